# The Python module spdc._core (python/bindings.cpp). pyproject.toml turns this on; by hand:
#     cmake --preset release -D SPDC_BUILD_PYTHON=ON -D Python_EXECUTABLE=VENV/bin/python
if(NOT SPDC_BUILD_PYTHON)
    return()
endif()
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
    OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)

# One module for every Python from 3.12 on (stable ABI), one for each before. verify() is the program's: it shares no formula
# with the library.
nanobind_add_module(_core STABLE_ABI NB_STATIC NB_SUPPRESS_WARNINGS python/bindings.cpp cli/verify.cpp)
target_link_libraries(_core PRIVATE spdc::spdc spdc_build_options fmt::fmt Threads::Threads)
nanobind_add_stub(_core_stub MODULE _core OUTPUT ${PROJECT_BINARY_DIR}/_core.pyi PYTHON_PATH $<TARGET_FILE_DIR:_core> DEPENDS _core)

install(TARGETS _core LIBRARY DESTINATION spdc COMPONENT python)

# fmt and the codecs come along: what distributions have as static libraries cannot go into a module.
set_target_properties(_core PROPERTIES INSTALL_RPATH $ORIGIN)
install(CODE [[
    file(GET_RUNTIME_DEPENDENCIES MODULES $<TARGET_FILE:_core> RESOLVED_DEPENDENCIES_VAR libraries
        PRE_INCLUDE_REGEXES "^lib(fmt|z|bz2|lzma|zstd)[.]" PRE_EXCLUDE_REGEXES .)
    foreach(library IN LISTS libraries)
        cmake_path(GET library FILENAME name)
        file(COPY_FILE ${library} ${CMAKE_INSTALL_PREFIX}/spdc/${name})
    endforeach()
]] COMPONENT python)
install(FILES ${PROJECT_BINARY_DIR}/_core.pyi DESTINATION spdc COMPONENT python)
