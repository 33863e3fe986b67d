# Installs BUILD into STAGE, then builds and runs the projects in SOURCE against what was installed.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "consumer: status ${status} of: ${ARGV}")
  endif()
endfunction()

# refuse(TEXT command …): the command fails and prints TEXT.
function(refuse text)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  string(FIND "${output}" "${text}" place)
  if(status EQUAL 0 OR place EQUAL -1)
    message(FATAL_ERROR "consumer: wanted a failure with '${text}' of: ${ARGN}\nstatus ${status}: ${output}")
  endif()
endfunction()

function(check condition)
  if(NOT (${ARGV}))
    message(FATAL_ERROR "consumer: not so: ${ARGV}")
  endif()
endfunction()

# A header or target file of an earlier installation would hide one that is no longer installed.
file(REMOVE_RECURSE ${STAGE})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${STAGE}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE}/cxx -B ${STAGE}/build -G ${GENERATOR}
    -DCMAKE_CXX_COMPILER=${CXX_COMPILER} "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}"
    -DCMAKE_BUILD_TYPE=${BUILD_TYPE} -DCMAKE_PREFIX_PATH=${STAGE}/prefix
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
run(${CMAKE_COMMAND} --build ${STAGE}/build)
run(${STAGE}/build/consumer)

# The example of docs/how-to/cuda-without-a-gpu.md finds its race with each compiler that is here, whichever built
# the package; one without hooks is refused.
if(NOT CXX_FLAGS MATCHES "fsanitize|coverage")
  file(WRITE ${STAGE}/hooks/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)
project(hooks CXX)
if(OTHER)
  set(CMAKE_CXX_COMPILER_ID \${OTHER})
endif()
find_package(attest REQUIRED COMPONENTS cxx)
add_executable(row_sums ${EXAMPLES}/../cuda/row_sums.cpp)
target_link_libraries(row_sums PRIVATE attest::simt_with_hooks)\n")
  set(configure_hooks ${CMAKE_COMMAND} -S ${STAGE}/hooks -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${STAGE}/prefix
      -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
  find_program(GCC g++)
  find_program(CLANG NAMES clang++-14 clang++)
  set(compilers ${CXX_COMPILER} ${GCC} ${CLANG})
  list(FILTER compilers EXCLUDE REGEX "-NOTFOUND$")
  foreach(compiler IN LISTS compilers)
    get_filename_component(name ${compiler} NAME)
    run(${configure_hooks} -B ${STAGE}/hooks/${name} -DCMAKE_CXX_COMPILER=${compiler})
    run(${CMAKE_COMMAND} --build ${STAGE}/hooks/${name})
    execute_process(COMMAND ${STAGE}/hooks/${name}/row_sums OUTPUT_VARIABLE output ERROR_VARIABLE output)
    string(REGEX MATCH "race: lane 0 reads [^\n]*row_sums.cpp:25" race "${output}")
    check(race)
  endforeach()
  refuse("attest::simt_with_hooks_needs_gcc_or_clang" ${configure_hooks} -B ${STAGE}/hooks/other -DOTHER=Other
         -DCMAKE_CXX_COMPILER=${CXX_COMPILER})
endif()

# A kernel's author has a C compiler, the installed header and the installed command.
run(${C_COMPILER} -O2 -shared -fPIC -I${STAGE}/prefix/include ${EXAMPLES}/attention.c -lm
    -o ${STAGE}/build/libattention.so)
run(${STAGE}/prefix/bin/attest list ${STAGE}/build/libattention.so)
run(${STAGE}/prefix/bin/attest check --kernel ${STAGE}/build/libattention.so
    --problem sq=5,sk=7,d=4 --law reference_backward)
# The installed command finds its CUDA runtime library.
run(${STAGE}/prefix/bin/attest check --kernel ${BUILD}/plugins/libby_hand.so:hand/right
    --problem sq=5,sk=7,d=4 --law reference_forward --emulate)

# The component runtime is the command, what it loads, one header, the schemas and the pages.
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${STAGE}/runtime --component runtime)
file(GLOB_RECURSE files RELATIVE ${STAGE}/runtime ${STAGE}/runtime/*)
list(FILTER files EXCLUDE REGEX "^share/(doc/attest|attest/schemas)/")
list(SORT files)
list(JOIN files " " files)
set(pages ${STAGE}/runtime/share/doc/attest)
foreach(file docs/how-to/install.md certify/schemas/certificate.schema.json ../../attest/schemas/certificate.schema.json)
  check(EXISTS ${pages}/${file})
endforeach()
set(check_pages ${PYTHON} ${SOURCE}/../installed_pages.py --check ${pages})
run(${check_pages})
file(READ ${pages}/docs/how-to/install.md text)
file(APPEND ${pages}/docs/how-to/install.md "[gone](gone.md)\n")
refuse("no docs/how-to/gone.md" ${check_pages})
file(WRITE ${pages}/docs/how-to/install.md "${text}")
refuse("usage: [SHARDS=16] slurm_submit.sh" ${pages}/docs/how-to/clusters/slurm_submit.sh)
check("${files}" STREQUAL "bin/attest bin/attest-emulate include/attest_kernel.h lib/attest/libcuda.so.1 lib/attest/libcudart.so.12 lib/attest/libcudart.so.13")
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${STAGE}/benches --component benches)
check(EXISTS ${STAGE}/benches/bin/attention_bench)

# A build folder in which the command alone has been built (ci/certify): the same scripts over what lies
# in another place.
file(MAKE_DIRECTORY ${STAGE}/part/bin ${STAGE}/part/lib)
file(GLOB_RECURSE scripts RELATIVE ${BUILD} ${BUILD}/cmake_install.cmake ${BUILD}/attest_check_*.cmake
     ${BUILD}/CMakeFiles/Export/*.cmake ${BUILD}/attestConfig*.cmake ${BUILD}/python/attest_api.h)
list(FILTER scripts EXCLUDE REGEX "^stage/")
foreach(script IN LISTS scripts)
  file(READ ${BUILD}/${script} text)
  string(REPLACE "${BUILD}" "${STAGE}/part" text "${text}")
  file(CONFIGURE OUTPUT ${STAGE}/part/${script} CONTENT "${text}" @ONLY)
endforeach()
set(install_part ${CMAKE_COMMAND} -DCMAKE_INSTALL_PREFIX=${STAGE}/some -P ${STAGE}/part/cmake_install.cmake)
refuse("the command has not been built" ${install_part})
check(NOT EXISTS ${STAGE}/some)
file(CREATE_LINK ${BUILD}/lib/attest ${STAGE}/part/lib/attest SYMBOLIC)
file(COPY ${BUILD}/bin/attest DESTINATION ${STAGE}/part/bin)
refuse("benches: not built: attention_bench" ${CMAKE_COMMAND} -DCMAKE_INSTALL_COMPONENT=benches
       -DCMAKE_INSTALL_PREFIX=${STAGE}/some -P ${STAGE}/part/cmake_install.cmake)
check(NOT EXISTS ${STAGE}/some)
run(${install_part})

# A project in C certifies its libraries by CTest; the wrong one fails there.
set(configure_c ${CMAKE_COMMAND} -S ${STAGE}/some/share/doc/attest/ci/consumer/c -B ${STAGE}/c -G ${GENERATOR}
    -DCMAKE_C_COMPILER=${C_COMPILER} -DWHOLE=${WHOLE} -DCMAKE_PREFIX_PATH=${STAGE}/some
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
run(${configure_c})
run(${CMAKE_COMMAND} --build ${STAGE}/c)
run(${CMAKE_CTEST_COMMAND} --test-dir ${STAGE}/c --no-tests=error -R "^right")
check(EXISTS ${STAGE}/c/attest/right.certified/certificate.json)
refuse("REFUSED" ${CMAKE_CTEST_COMMAND} --test-dir ${STAGE}/c --output-on-failure
       -R "^wrong.certified.my/attention$")
check(EXISTS ${STAGE}/c/attest/wrong.certified.my/attention/certificate.json)
# No certificate of an earlier run stays where the library does not load any more.
file(TOUCH ${STAGE}/c/attest/empty.certified/certificate.json)
refuse("attest_get_kernel" ${CMAKE_CTEST_COMMAND} --test-dir ${STAGE}/c --output-on-failure
       -R "^empty.certified$")
check(NOT EXISTS ${STAGE}/c/attest/empty.certified/certificate.json)
refuse("attest_get_kernel" ${CMAKE_CTEST_COMMAND} --test-dir ${STAGE}/c --output-on-failure -R "^empty.loads$")
file(WRITE ${STAGE}/absent/CMakeLists.txt "project(absent C)\nfind_package(attest REQUIRED COMPONENTS cxx)\n")
refuse("it had not been built when Attest was installed" ${CMAKE_COMMAND} -S ${STAGE}/absent -B ${STAGE}/absent/build
       -DCMAKE_PREFIX_PATH=${STAGE}/some)
file(WRITE ${STAGE}/typing/CMakeLists.txt "project(typing C)
find_package(attest REQUIRED)
file(WRITE \${CMAKE_CURRENT_BINARY_DIR}/f.c \"int attest_of_nothing;\")
add_library(archive STATIC \${CMAKE_CURRENT_BINARY_DIR}/f.c)
add_library(shared SHARED \${CMAKE_CURRENT_BINARY_DIR}/f.c)
separate_arguments(ARGUMENTS)
attest_certify_library(\${ARGUMENTS})\n")
foreach(pair "absent=no such target" "archive=it must be a library, SHARED or MODULE" "archive KERNEL a=known are KERNELS"
             "archive SEED=known are KERNELS" "shared PROBLEMS absent.txt=there is no file ${STAGE}/typing/absent.txt"
             "shared PROBLEMS .=there is no file" "shared SEED x=SEED is 'x', no whole number"
             "shared TIMEOUT 1.5h=TIMEOUT is '1.5h', no whole number"
             "shared KNOWN_FAILURES absent.txt=there is no file ${STAGE}/typing/absent.txt")
  string(REGEX MATCH "^([^=]+)=(.*)$" ignored "${pair}")
  set(arguments "${CMAKE_MATCH_1}")
  refuse("${CMAKE_MATCH_2}" ${CMAKE_COMMAND} -S ${STAGE}/typing -B ${STAGE}/typing/build
         -DCMAKE_PREFIX_PATH=${STAGE}/some "-DARGUMENTS=${arguments}")
endforeach()
foreach(testing "" "enable_testing()" "include(CTest)")
  file(WRITE ${STAGE}/testing/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)\nproject(testing C)
find_package(attest REQUIRED)
add_custom_command(OUTPUT served.txt COMMAND \${CMAKE_COMMAND} -E touch served.txt)
file(WRITE \${CMAKE_CURRENT_BINARY_DIR}/f.c \"int attest_of_nothing;\")
add_library(mine SHARED \${CMAKE_CURRENT_BINARY_DIR}/f.c)
attest_certify_library(mine PROBLEMS \${CMAKE_CURRENT_BINARY_DIR}/served.txt)
${testing}\n")
  file(REMOVE_RECURSE ${STAGE}/testing/build)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${STAGE}/testing -B ${STAGE}/testing/build -DCMAKE_PREFIX_PATH=${STAGE}/some
                  RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE output)
  check(status EQUAL 0)
  string(FIND "${output}" "call enable_testing()" place)
  if(testing)
    check(place EQUAL -1)
  else()
    check(place GREATER -1)
  endif()
endforeach()
