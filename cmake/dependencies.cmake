find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(Eigen3 3.3 REQUIRED NO_MODULE)
find_package(nlohmann_json REQUIRED)

# spdc_codec(ZLIB package target): obeys SPDC_WITH_ZLIB, sets SPDC_HAVE_ZLIB.
macro(spdc_codec codec package target)
    spdc_find(SPDC_WITH_${codec} ${package})
    set(SPDC_HAVE_${codec} ${${package}_FOUND})
    if(SPDC_HAVE_${codec})
        list(APPEND SPDC_CODECS ${codec})
        list(APPEND SPDC_CODEC_TARGETS ${target})
    endif()
endmacro()

set(SPDC_CODECS "")
set(SPDC_CODEC_TARGETS "")
spdc_codec(ZLIB ZLIB ZLIB::ZLIB)
spdc_codec(BZIP2 BZip2 BZip2::BZip2)
spdc_codec(LZMA LibLZMA LibLZMA::LibLZMA)
spdc_codec(ZSTD Zstd Zstd::Zstd)
message(STATUS "Compressed files: ${SPDC_CODECS}")

# Links the codecs found and defines SPDC_HAVE_ZLIB, SPDC_HAVE_BZIP2, SPDC_HAVE_LZMA, SPDC_HAVE_ZSTD for them.
function(spdc_link_compression target)
    target_link_libraries(${target} PRIVATE ${SPDC_CODEC_TARGETS})
    list(TRANSFORM SPDC_CODECS PREPEND SPDC_HAVE_ OUTPUT_VARIABLE definitions)
    target_compile_definitions(${target} PRIVATE ${definitions})
endfunction()
