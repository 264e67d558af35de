include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/spdc)

install(TARGETS spdc EXPORT spdcTargets FILE_SET HEADERS)
if(SPDC_BUILD_CLI)
    install(TARGETS spdc-cli)
endif()
install(EXPORT spdcTargets NAMESPACE spdc:: DESTINATION ${package_dir})

configure_package_config_file(cmake/spdcConfig.cmake.in spdcConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(spdcConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/spdcConfig.cmake ${PROJECT_BINARY_DIR}/spdcConfigVersion.cmake cmake/FindZstd.cmake
        DESTINATION ${package_dir})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
