# Undefined behaviour ends the run: a test that only prints a report would pass.
set(SPDC_SANITIZER_FLAGS "")
if(SPDC_SANITIZE)
    set(SPDC_SANITIZER_FLAGS -fsanitize=${SPDC_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
endif()
