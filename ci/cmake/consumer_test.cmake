# Installs BUILD into STAGE, then builds and runs the project in SOURCE against what was installed.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "consumer: status ${status} of: ${ARGV}")
  endif()
endfunction()

# A header or target file of an earlier installation would hide one that is no longer installed.
file(REMOVE_RECURSE ${STAGE})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${STAGE}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${STAGE}/build -G ${GENERATOR}
    -DCMAKE_CXX_COMPILER=${CXX_COMPILER} "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}"
    -DCMAKE_BUILD_TYPE=${BUILD_TYPE} -DCMAKE_PREFIX_PATH=${STAGE}/prefix
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
run(${CMAKE_COMMAND} --build ${STAGE}/build)
run(${STAGE}/build/consumer)

# A kernel's author has a C compiler, the installed header and the installed command.
run(${C_COMPILER} -O2 -shared -fPIC -I${STAGE}/prefix/include ${EXAMPLES}/attention.c -lm
    -o ${STAGE}/build/libattention.so)
run(${STAGE}/prefix/bin/attest list ${STAGE}/build/libattention.so)
run(${STAGE}/prefix/bin/attest check --kernel ${STAGE}/build/libattention.so
    --problem sq=5,sk=7,d=4 --law reference_backward)
# The installed command finds its CUDA runtime library.
run(${STAGE}/prefix/bin/attest check --kernel ${BUILD}/plugins/libby_hand.so:hand/right
    --problem sq=5,sk=7,d=4 --law reference_forward --emulate)
