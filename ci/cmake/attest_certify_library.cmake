# attest_certify_library(target [KERNELS name …] [TIER smoke|fast|full] [SEED n] [PROBLEMS file]
#                        [TIMEOUT seconds] [OPTIONS word …])
#
# Adds tests that certify a shared library (add_library SHARED or MODULE):
#
#   <target>.loads             the library exports kernels whose descriptions make sense
#   <target>.certified         `attest certify` on all of its kernels; with KERNELS one test for each,
#   <target>.certified.<name>  the name as the library gives it
#
# TIER is smoke unless told otherwise. PROBLEMS names a file of problems to judge beside the campaign's,
# OPTIONS are further ones of `attest certify`. A campaign runs alone, for it uses all processors; TIMEOUT
# is an hour. <build>/attest/<test>/ then has certificate.json, report.html, junit.xml and failures/.
# PROBLEMS must be there already, unless a command makes it (the property GENERATED). Where no
# enable_testing() reaches the folder a warning says so: CTest would run nothing.
function(attest_certify_library target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "TIER;SEED;PROBLEMS;TIMEOUT" "KERNELS;OPTIONS")
  if(ARG_UNPARSED_ARGUMENTS OR ARG_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "attest_certify_library(${target}): unknown or empty: "
                        "'${ARG_UNPARSED_ARGUMENTS}${ARG_KEYWORDS_MISSING_VALUES}'; known are KERNELS, TIER, "
                        "SEED, PROBLEMS, TIMEOUT and OPTIONS, each with a value")
  endif()
  if(NOT TARGET ${target})
    message(FATAL_ERROR "attest_certify_library(${target}): no such target")
  endif()
  get_target_property(type ${target} TYPE)
  if(NOT type MATCHES "^(SHARED|MODULE)_LIBRARY$")
    message(FATAL_ERROR "attest_certify_library(${target}): the target is of type ${type}; "
                        "it must be a library, SHARED or MODULE")
  endif()
  if(NOT ARG_TIER)
    set(ARG_TIER smoke)
  elseif(NOT ARG_TIER MATCHES "^(smoke|fast|full)$")
    message(FATAL_ERROR "attest_certify_library(${target}): TIER is '${ARG_TIER}'; it is smoke, fast or full")
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 3600)
  endif()
  set(options --tier ${ARG_TIER} ${ARG_OPTIONS})
  if(DEFINED ARG_SEED)
    list(APPEND options --seed ${ARG_SEED})
  endif()
  if(DEFINED ARG_PROBLEMS)
    get_filename_component(problems "${ARG_PROBLEMS}" ABSOLUTE)
    get_source_file_property(generated "${problems}" GENERATED)
    if(NOT generated AND (NOT EXISTS "${problems}" OR IS_DIRECTORY "${problems}"))
      message(FATAL_ERROR "attest_certify_library(${target}): PROBLEMS: there is no file ${problems}")
    endif()
    list(APPEND options --problems ${problems})
  endif()

  get_property(asked DIRECTORY PROPERTY ATTEST_ASKED_FOR_TESTING)
  if(NOT asked)  # at the folder's end, for enable_testing() may come after this call
    set_property(DIRECTORY PROPERTY ATTEST_ASKED_FOR_TESTING YES)
    cmake_language(DEFER CALL attest_ask_for_testing)
  endif()
  add_test(NAME ${target}.loads COMMAND attest::attest list $<TARGET_FILE:${target}>)
  set_tests_properties(${target}.loads PROPERTIES FIXTURES_SETUP attest_${target}_loads TIMEOUT 60)

  set(subjects "$<TARGET_FILE:${target}>")
  set(names ${target}.certified)
  if(ARG_KERNELS)
    list(TRANSFORM ARG_KERNELS PREPEND "$<TARGET_FILE:${target}>:" OUTPUT_VARIABLE subjects)
    list(TRANSFORM ARG_KERNELS PREPEND "${target}.certified." OUTPUT_VARIABLE names)
  endif()
  cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
  foreach(name subject IN ZIP_LISTS names subjects)
    string(REPLACE "/" "_" folder "${name}")
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/attest/${folder})
    file(MAKE_DIRECTORY ${folder})
    add_test(NAME ${name}
      COMMAND attest::attest certify ${subject} ${options} --out ${folder}/certificate.json
              --html ${folder}/report.html --junit ${folder}/junit.xml --failures ${folder}/failures)
    set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED attest_${target}_loads
                                            PROCESSORS ${processors} TIMEOUT ${ARG_TIMEOUT} LABELS attest)
  endforeach()
endfunction()

# Called at the end of a folder that has such tests.
function(attest_ask_for_testing)
  if(NOT CMAKE_TESTING_ENABLED AND (NOT DEFINED BUILD_TESTING OR BUILD_TESTING))
    message(WARNING "attest_certify_library: CTest will run no test of ${CMAKE_CURRENT_SOURCE_DIR}; call enable_testing() in the top CMakeLists.txt, before add_subdirectory")
  endif()
endfunction()
