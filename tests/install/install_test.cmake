# cmake -D build=... -D data=... -D version=... -D compiler=... -P install_test.cmake
set(folder ${build}/install-test)
file(REMOVE_RECURSE ${folder})
set(CMAKE_EXECUTE_PROCESS_COMMAND_ECHO STDOUT)

execute_process(COMMAND ${CMAKE_COMMAND} --install ${build} --prefix ${folder}/prefix
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${CMAKE_CURRENT_LIST_DIR} -B ${folder}/consumer
    -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_PREFIX_PATH=${folder}/prefix
    COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${folder}/consumer COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${folder}/consumer/consumer ${data}/a9a.xz COMMAND_ERROR_IS_FATAL ANY)

execute_process(COMMAND ${folder}/prefix/bin/spdc --version OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
string(FIND "${said}" "${version}" at)
if(at EQUAL -1)
    message(FATAL_ERROR "spdc --version says '${said}', expected ${version}")
endif()
