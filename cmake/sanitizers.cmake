# Undefined behaviour ends the run: a test that only prints a report would pass.
set(SPDC_SANITIZER_FLAGS "")
if(SPDC_SANITIZE)
    set(SPDC_SANITIZER_FLAGS -fsanitize=${SPDC_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    if(SPDC_SANITIZE MATCHES "address" AND SPDC_SANITIZE MATCHES "undefined")
        # What these would report, the address sanitizer sees when it happens; without them the build takes two thirds of the time.
        list(APPEND SPDC_SANITIZER_FLAGS -fno-sanitize=null,vptr,object-size,pointer-overflow)
    endif()
endif()
