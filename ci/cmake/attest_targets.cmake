# The words the rooms' CMakeLists use. Each sets the project's one set of flags, so no room has its
# own.
#
#   attest_add_library(attest_room SOURCES a.cpp b.cpp DEPENDS attest_core PRIVATE_DEPENDS fmt::fmt)
#   attest_add_test(room_test SOURCES a_test.cpp DEPENDS attest_room [LABELS slow] [TIMEOUT seconds]
#                   [COST seconds])
#   attest_add_program(attest SOURCES main.cpp DEPENDS attest_certify COMPONENT runtime|benches)
#
# With QUICK_TO_COMPILE, as every test without COST, for what takes longer to compile than to run; with
# OWN_PRECOMPILED for a library that calls attest_precompile_own.
include(GNUInstallDirs)
include(attest_precompiled)
include(attest_components)

# All libraries of C++ as attest::cxx; attest::attest is the command.
add_library(attest_umbrella INTERFACE)
set_target_properties(attest_umbrella PROPERTIES EXPORT_NAME cxx)
add_library(attest::cxx ALIAS attest_umbrella)
install(TARGETS attest_umbrella EXPORT attest_cxx_targets)

# Seconds a test may take before CTest ends it: a hang must not use up the runner's hour.
set(ATTEST_TEST_TIMEOUT 1800)
if(CMAKE_CXX_FLAGS MATCHES "fsanitize")
  set(ATTEST_TEST_TIMEOUT 3600)
endif()

# Two thirds to three quarters of the time to compile at -O1, with clang at -O0 half of that.
set(ATTEST_QUICK_LEVEL -O1 CACHE STRING "Optimisation of what takes longer to compile than to run")
set(ATTEST_QUICK_OPTIONS $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:${ATTEST_QUICK_LEVEL}>)

function(attest_arguments)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "QUICK_TO_COMPILE;OWN_PRECOMPILED" "TIMEOUT;COST;COMPONENT" "SOURCES;DEPENDS;PRIVATE_DEPENDS;LABELS")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "attest: target '${ARGV0}': unknown arguments '${ARG_UNPARSED_ARGUMENTS}'; "
                        "the lists are SOURCES, DEPENDS, PRIVATE_DEPENDS, LABELS, TIMEOUT, COST, "
                        "COMPONENT, QUICK_TO_COMPILE and OWN_PRECOMPILED")
  endif()
  if(NOT ARG_SOURCES)
    message(FATAL_ERROR "attest: target '${ARGV0}' has no SOURCES")
  endif()
  foreach(name SOURCES DEPENDS PRIVATE_DEPENDS LABELS TIMEOUT COST COMPONENT QUICK_TO_COMPILE OWN_PRECOMPILED)
    set(ARG_${name} "${ARG_${name}}" PARENT_SCOPE)
  endforeach()
endfunction()

# Notes whether the target, or one that it depends on, is compiled with OpenMP, which the targets
# that depend on it by DEPENDS then are too. (A property of our own: CMake knows it only after all
# are described.)
function(attest_note_openmp name)
  set(all ${ARG_PRIVATE_DEPENDS} ${ARG_DEPENDS})
  set(public_openmp NO)
  set(openmp NO)
  foreach(depend IN LISTS all)
    set(has NO)
    if(depend STREQUAL "OpenMP::OpenMP_CXX")
      set(has YES)
    elseif(TARGET ${depend})
      get_target_property(has ${depend} ATTEST_PUBLIC_OPENMP)
    endif()
    if(has)
      set(openmp YES)
      if(depend IN_LIST ARG_DEPENDS)
        set(public_openmp YES)
      endif()
    endif()
  endforeach()
  set_target_properties(${name} PROPERTIES ATTEST_OPENMP ${openmp} ATTEST_PUBLIC_OPENMP ${public_openmp})
endfunction()

# A static library of one room: exported as attest::<name without attest_>, its headers installed
# under include/attest/<room>, which keeps the include paths of the tree.
function(attest_add_library name)
  attest_arguments(${ARGV})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/attest>)
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS}
                                PRIVATE $<BUILD_INTERFACE:attest_flags> ${ARG_PRIVATE_DEPENDS})
  string(REGEX REPLACE "^attest_" "" short_name ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short_name} POSITION_INDEPENDENT_CODE ON)
  attest_note_openmp(${name})
  if(ARG_QUICK_TO_COMPILE)
    target_compile_options(${name} PRIVATE ${ATTEST_QUICK_OPTIONS})
    attest_precompile(${name} quick_library)
  elseif(NOT ARG_OWN_PRECOMPILED)
    attest_precompile(${name} library)
  endif()
  add_library(attest::${short_name} ALIAS ${name})
  target_link_libraries(attest_umbrella INTERFACE ${name})
  set_property(GLOBAL APPEND PROPERTY ATTEST_INSTALLED_DEPENDS ${ARG_DEPENDS} ${ARG_PRIVATE_DEPENDS})
  install(TARGETS ${name} EXPORT attest_cxx_targets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development OPTIONAL)
  attest_note_component(development ${name})
  set_property(GLOBAL APPEND PROPERTY ATTEST_CXX_LIBRARIES
    ${CMAKE_STATIC_LIBRARY_PREFIX}${name}${CMAKE_STATIC_LIBRARY_SUFFIX})
  file(RELATIVE_PATH room ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  attest_install_headers(${room})
endfunction()

# Installs the headers of this folder and of those below it, but tests'. They are listed as they are
# installed; install(DIRECTORY) would make folders that have none, too.
function(attest_install_headers room)
  install(CODE "
    set(from [==[${CMAKE_CURRENT_SOURCE_DIR}]==])
    set(to \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/attest/${room}\")
    file(GLOB_RECURSE headers RELATIVE \"\${from}\" \"\${from}/*.hpp\" \"\${from}/*.h\" \"\${from}/*.cuh\")
    list(FILTER headers EXCLUDE REGEX \"(^|/)testing/\")
    foreach(header IN LISTS headers)
      get_filename_component(folder \${header} DIRECTORY)
      file(INSTALL DESTINATION \"\${to}/\${folder}\" TYPE FILE FILES \"\${from}/\${header}\")
    endforeach()" COMPONENT development)
endfunction()

# One test program with the project's own main, run as the CTest of the same name less `_test`.
function(attest_add_test name)
  attest_arguments(${ARGV})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} ${ARG_PRIVATE_DEPENDS} attest_test_main
                                        attest_flags)
  attest_note_openmp(${name})
  string(REGEX REPLACE "_test$" "" test_name ${name})
  add_test(NAME ${test_name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT ${ATTEST_TEST_TIMEOUT})
  endif()
  # 77: the device that the test needs is absent.
  # Threads of OpenMP that wait by spinning take a busy machine's processors from other tests.
  set_tests_properties(${test_name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77
                                               ENVIRONMENT OMP_WAIT_POLICY=passive)
  # About how long the longest tests take: CTest begins with them, so that none is left alone at the end.
  if(ARG_COST)
    set_tests_properties(${test_name} PROPERTIES COST ${ARG_COST})
  endif()
  if(ARG_QUICK_TO_COMPILE OR NOT ARG_COST)
    target_compile_options(${name} PRIVATE ${ATTEST_QUICK_OPTIONS})
    attest_precompile(${name} quick_test)
  else()
    attest_precompile(${name} test)
  endif()
  if(ARG_LABELS)
    set_tests_properties(${test_name} PROPERTIES LABELS "${ARG_LABELS}")
  endif()
endfunction()

# Links the commit of the checkout into a program or a shared library, looked up at each build.
function(attest_link_commit name)
  if(NOT TARGET attest_commit)
    set(source ${PROJECT_BINARY_DIR}/attest_commit.cpp)
    add_custom_target(attest_commit_file BYPRODUCTS ${source}
      COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUT=${source}
              -P ${PROJECT_SOURCE_DIR}/ci/cmake/commit.cmake
      COMMENT "")
    add_library(attest_commit OBJECT ${source})
    # Hidden: a shared library exports what its header declares.
    set_target_properties(attest_commit PROPERTIES POSITION_INDEPENDENT_CODE ON
                                                   CXX_VISIBILITY_PRESET hidden)
    add_dependencies(attest_commit attest_commit_file)
  endif()
  target_sources(${name} PRIVATE $<TARGET_OBJECTS:attest_commit>)
endfunction()

# A command for people, at <build>/bin/<name>, where the scripts in ci/ look for it. Only `attest` is
# exported, and only it must have been built for an installation of everything.
function(attest_add_program name)
  attest_arguments(${ARGV})
  if(NOT ARG_COMPONENT MATCHES "^(runtime|benches)$")
    message(FATAL_ERROR "attest: program '${name}': COMPONENT is '${ARG_COMPONENT}'; it is runtime or benches")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} ${ARG_PRIVATE_DEPENDS} attest_flags)
  # A tarball has the libraries of other projects there (ci/packages); elsewhere the folder is absent.
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin
                                           INSTALL_RPATH $ORIGIN/../lib/attest/bundled)
  attest_note_openmp(${name})
  if(ARG_QUICK_TO_COMPILE)
    target_compile_options(${name} PRIVATE ${ATTEST_QUICK_OPTIONS})
    attest_precompile(${name} quick_program)
  else()
    attest_precompile(${name} program)
  endif()
  set(how OPTIONAL)
  set(export "")
  if(name STREQUAL "attest")
    set(how "")
    set(export EXPORT attest_targets)
    add_executable(attest::attest ALIAS attest)
  endif()
  install(TARGETS ${name} ${export}
          RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${ARG_COMPONENT} ${how})
  attest_note_component(${ARG_COMPONENT} ${name})
endfunction()
