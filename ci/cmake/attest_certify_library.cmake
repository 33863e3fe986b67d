# attest_certify_library(target [KERNELS name …] [TIER smoke|fast|full] [SEED n] [PROBLEMS file]
#                        [KNOWN_FAILURES file] [TIMEOUT seconds] [OPTIONS word …])
#
# Adds tests that certify a shared library (add_library SHARED or MODULE):
#
#   <target>.loads             the library exports kernels whose descriptions make sense
#   <target>.certified         `attest certify` on all of its kernels; with KERNELS one test for each,
#   <target>.certified.<name>  the name as the library gives it
#
# TIER is smoke unless told otherwise. PROBLEMS names a file of problems to judge beside the campaign's,
# KNOWN_FAILURES one of findings that are expected; both must be there already, unless a command makes them
# (the property GENERATED). OPTIONS are further ones of `attest certify`, whose relative paths begin in the
# build folder. A campaign runs alone, for it uses all processors; TIMEOUT is an hour.
# <build>/attest/<test>/ then has certificate.json, report.html, junit.xml and failures/; <test>.cleared
# removes those of an earlier run, so that none stays where the library does not load. Where no
# enable_testing() reaches the folder a warning says so: CTest would run nothing.
function(attest_certify_library target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "TIER;SEED;PROBLEMS;KNOWN_FAILURES;TIMEOUT" "KERNELS;OPTIONS")
  if(ARG_UNPARSED_ARGUMENTS OR ARG_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "attest_certify_library(${target}): unknown or empty: "
                        "'${ARG_UNPARSED_ARGUMENTS}${ARG_KEYWORDS_MISSING_VALUES}'; known are KERNELS, TIER, "
                        "SEED, PROBLEMS, KNOWN_FAILURES, TIMEOUT and OPTIONS, each with a value")
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
  if(NOT DEFINED ARG_TIMEOUT)
    set(ARG_TIMEOUT 3600)
  endif()
  foreach(keyword SEED TIMEOUT)
    if(DEFINED ARG_${keyword} AND NOT ARG_${keyword} MATCHES "^[0-9]+$")
      message(FATAL_ERROR "attest_certify_library(${target}): ${keyword} is '${ARG_${keyword}}', no whole number")
    endif()
  endforeach()
  set(options --tier ${ARG_TIER} ${ARG_OPTIONS})
  if(DEFINED ARG_SEED)
    list(APPEND options --seed ${ARG_SEED})
  endif()
  foreach(pair "PROBLEMS=--problems" "KNOWN_FAILURES=--known-failures")
    string(REPLACE "=" ";" pair ${pair})
    list(GET pair 0 keyword)
    list(GET pair 1 option)
    if(DEFINED ARG_${keyword})
      get_filename_component(file "${ARG_${keyword}}" ABSOLUTE)
      get_source_file_property(generated "${file}" GENERATED)
      if(NOT generated AND (NOT EXISTS "${file}" OR IS_DIRECTORY "${file}"))
        message(FATAL_ERROR "attest_certify_library(${target}): ${keyword}: there is no file ${file}")
      endif()
      list(APPEND options ${option} ${file})
    endif()
  endforeach()

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
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/attest/${name})
    file(MAKE_DIRECTORY ${folder})
    add_test(NAME ${name}.cleared COMMAND ${CMAKE_COMMAND} -E rm -rf ${folder}/certificate.json
             ${folder}/report.html ${folder}/junit.xml ${folder}/failures)
    set_tests_properties(${name}.cleared PROPERTIES FIXTURES_SETUP attest_${name}_cleared)
    add_test(NAME ${name}
      COMMAND attest::attest certify ${subject} ${options} --out ${folder}/certificate.json
              --html ${folder}/report.html --junit ${folder}/junit.xml --failures ${folder}/failures)
    set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED "attest_${target}_loads;attest_${name}_cleared"
                                            PROCESSORS ${processors} TIMEOUT ${ARG_TIMEOUT} LABELS attest)
  endforeach()
endfunction()

# Called at the end of a folder that has such tests.
function(attest_ask_for_testing)
  if(NOT CMAKE_TESTING_ENABLED AND (NOT DEFINED BUILD_TESTING OR BUILD_TESTING))
    message(WARNING "attest_certify_library: CTest will run no test of ${CMAKE_CURRENT_SOURCE_DIR}; call enable_testing() in the top CMakeLists.txt, before add_subdirectory")
  endif()
endfunction()
