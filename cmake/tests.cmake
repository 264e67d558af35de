# Quick tests: tests/*_test.cpp in one program. Long ones: tests/long/*_test.cpp, with the ctest label long.
# The programs list their tests when ctest starts, so that a build never runs anything.
spdc_find(SPDC_BUILD_TESTS GTest)
if(NOT GTest_FOUND)
    return()
endif()
enable_testing()
include(GoogleTest)
file(GLOB test_support CONFIGURE_DEPENDS tests/support/*.cpp)

# spdc_add_tests(name label seconds sources...)
function(spdc_add_tests name label seconds)
    if(NOT ARGN)
        return()
    endif()
    add_executable(${name} ${ARGN} ${test_support})
    target_include_directories(${name} PRIVATE tests src)
    target_compile_options(${name} PRIVATE ${SPDC_TEST_FLAGS})
    target_compile_definitions(${name} PRIVATE SPDC_DATA="${PROJECT_SOURCE_DIR}/data")
    target_link_libraries(${name} PRIVATE spdc::spdc spdc_build_options GTest::gtest_main GTest::gmock fmt::fmt
        Eigen3::Eigen nlohmann_json::nlohmann_json Threads::Threads)
    spdc_link_compression(${name})
    if(SPDC_PRECOMPILE AND label STREQUAL quick) # the long ones are too few to pay for it
        target_precompile_headers(${name} PRIVATE
            <gmock/gmock.h> <fmt/format.h> <algorithm> <random> "${PROJECT_SOURCE_DIR}/include/spdc/spdc.h")
    endif()
    if(SPDC_TEST_SHARDS)
        math(EXPR last "${SPDC_TEST_SHARDS} - 1")
        foreach(shard RANGE ${last})
            add_test(NAME ${name}.${shard} COMMAND ${name} --gtest_brief=1 --gtest_filter=${SPDC_TEST_FILTER})
            set_tests_properties(${name}.${shard} PROPERTIES LABELS ${label} TIMEOUT ${seconds}
                ENVIRONMENT "GTEST_TOTAL_SHARDS=${SPDC_TEST_SHARDS};GTEST_SHARD_INDEX=${shard}")
        endforeach()
    else()
        gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
            PROPERTIES LABELS ${label} TIMEOUT ${seconds})
    endif()
endfunction()

file(GLOB quick_tests CONFIGURE_DEPENDS tests/*_test.cpp)
# It instantiates every property for every loss: optimised, it takes longer to compile than all it tests takes to run.
set_source_files_properties(tests/losses_test.cpp PROPERTIES COMPILE_OPTIONS -O0 SKIP_PRECOMPILE_HEADERS ON)
if(SPDC_SANITIZE STREQUAL thread) # compile only the files of the tests that its preset runs
    foreach(source IN LISTS quick_tests)
        file(STRINGS ${source} threaded LIMIT_COUNT 1 REGEX "^TEST.*([Tt]hread|[Tt]eam|[Mm]ini_?[Bb]atch|[Pp]arallel)")
        if(NOT threaded)
            list(REMOVE_ITEM quick_tests ${source})
        endif()
    endforeach()
endif()
spdc_add_tests(spdc-tests quick 300 ${quick_tests})
if(SPDC_BUILD_LONG_TESTS)
    file(GLOB long_tests CONFIGURE_DEPENDS tests/long/*_test.cpp)
    spdc_add_tests(spdc-long-tests long 3600 ${long_tests})
endif()

# The program through its own door. SPDC: the program; SPDC_DATA: the bundled data.
if(SPDC_BUILD_CLI)
    file(GLOB cli_tests CONFIGURE_DEPENDS tests/cli/*_test.sh)
    foreach(script IN LISTS cli_tests)
        cmake_path(GET script STEM name)
        add_test(NAME cli.${name} COMMAND bash ${script})
        set_tests_properties(cli.${name} PROPERTIES LABELS quick TIMEOUT 300
            ENVIRONMENT "SPDC=$<TARGET_FILE:spdc-cli>;SPDC_DATA=${PROJECT_SOURCE_DIR}/data")
    endforeach()

    # Installs this build into an empty prefix and builds a project that knows nothing but find_package(spdc).
    if(NOT SPDC_SANITIZE)
        add_test(NAME install COMMAND ${CMAKE_COMMAND}
            -D build=${PROJECT_BINARY_DIR} -D data=${PROJECT_SOURCE_DIR}/data -D version=${PROJECT_VERSION}
            -D compiler=${CMAKE_CXX_COMPILER}
            -P ${PROJECT_SOURCE_DIR}/tests/install/install_test.cmake)
        set_tests_properties(install PROPERTIES LABELS quick TIMEOUT 300)
    endif()
endif()
