set(SPDC_WARNING_FLAGS -Wall -Wextra -Wpedantic -Wshadow)
if(SPDC_WERROR)
    list(APPEND SPDC_WARNING_FLAGS -Werror)
endif()
