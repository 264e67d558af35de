# Kernel timings: each bench/micro/NAME.cpp becomes build/<preset>/bench/NAME; the target bench builds them all.
spdc_find(SPDC_BUILD_BENCH benchmark)
if(benchmark_FOUND)
    add_custom_target(bench)
    file(GLOB bench_sources CONFIGURE_DEPENDS bench/micro/*.cpp)
    foreach(source IN LISTS bench_sources)
        cmake_path(GET source STEM name)
        add_executable(bench-${name} ${source})
        set_target_properties(bench-${name} PROPERTIES
            OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
        target_include_directories(bench-${name} PRIVATE src)
        target_link_libraries(bench-${name} PRIVATE
            spdc::spdc spdc_build_options benchmark::benchmark fmt::fmt Threads::Threads)
        add_dependencies(bench bench-${name})
    endforeach()
endif()
