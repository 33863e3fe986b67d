# The headers from outside that most files read, compiled once: reading them took two thirds of the time
# to compile a file. A copy is for one set of flags: position independence, OpenMP, hooks, optimisation.
# A file still includes all that it uses: ci/check_includes, and clang, which compiles without the copies.
#
#   attest_precompile(target library|quick_library|test|quick_test|program|quick_program|hooked)
#   attest_precompile_own(target header …)  a copy for this target alone, which has flags of its own
set(attest_outside_headers
    <algorithm> <array> <cmath> <cstdint> <functional> <limits> <map> <memory> <optional> <set>
    <sstream> <string> <string_view> <utility> <vector>)
# g++ reads a copy whole, clang the parts that a file uses: there a copy also holds the headers of this
# tree that most files read.
set(attest_openmp_headers "")
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND attest_outside_headers <Eigen/Core> <fmt/format.h> <nlohmann/json.hpp> <regex> <variant>
       ${PROJECT_SOURCE_DIR}/core/problem.hpp ${PROJECT_SOURCE_DIR}/io/schedule/schedule.hpp
       ${PROJECT_SOURCE_DIR}/gpu/simt/launch.hpp)
  list(APPEND attest_openmp_headers ${PROJECT_SOURCE_DIR}/certify/campaign/campaign.hpp)
  set(attest_precompiled_libraries Eigen3::Eigen fmt::fmt nlohmann_json::nlohmann_json)
endif()
set(can_precompile YES)
if(CMAKE_DISABLE_PRECOMPILE_HEADERS OR NOT CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  set(can_precompile NO)
endif()

# clang wants a file and its copy to have the same macros, also of libraries that the file does not use.
function(attest_use_macros_of_copy name)
  foreach(library IN LISTS attest_precompiled_libraries)
    target_compile_definitions(${name} PRIVATE $<TARGET_PROPERTY:${library},INTERFACE_COMPILE_DEFINITIONS>)
    target_include_directories(${name} SYSTEM PRIVATE $<TARGET_PROPERTY:${library},INTERFACE_INCLUDE_DIRECTORIES>)
  endforeach()
endfunction()

function(attest_precompile name kind)
  if(NOT can_precompile)
    return()
  endif()
  get_target_property(openmp ${name} ATTEST_OPENMP)
  set(copy attest_precompiled_${kind})
  if(openmp)
    string(APPEND copy _openmp)
  endif()
  if(NOT TARGET ${copy})
    set(nothing ${PROJECT_BINARY_DIR}/precompiled/${copy}.cpp)
    file(CONFIGURE OUTPUT ${nothing} CONTENT "")
    add_library(${copy} OBJECT ${nothing})
    target_link_libraries(${copy} PRIVATE attest_flags ${attest_precompiled_libraries})
    target_include_directories(${copy} PRIVATE ${PROJECT_SOURCE_DIR})
    set(headers ${attest_outside_headers})
    if(openmp)
      target_link_libraries(${copy} PRIVATE OpenMP::OpenMP_CXX)
      list(APPEND headers ${attest_openmp_headers})
    endif()
    if(kind MATCHES "test")
      target_link_libraries(${copy} PRIVATE Catch2::Catch2)
      list(APPEND headers ${PROJECT_SOURCE_DIR}/core/testing/catch.hpp)
    elseif(kind MATCHES "program")
      target_link_libraries(${copy} PRIVATE CLI11::CLI11)
      list(APPEND headers <CLI/CLI.hpp>)
    elseif(kind STREQUAL "hooked")
      target_compile_options(${copy} PRIVATE ${ATTEST_HOOKED_OPTIONS})
    else()
      set_target_properties(${copy} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    endif()
    if(kind MATCHES "quick")
      target_compile_options(${copy} PRIVATE ${ATTEST_QUICK_OPTIONS})
    endif()
    target_precompile_headers(${copy} PRIVATE ${headers})
  endif()
  target_precompile_headers(${name} REUSE_FROM ${copy})
  attest_use_macros_of_copy(${name})
  # With a copy, g++ 12 reports std::string + literal falsely in two more ways than without
  # (CMakeLists.txt); -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON has every warning (ci/nightly).
  set(has_copy $<NOT:$<BOOL:$<TARGET_PROPERTY:DISABLE_PRECOMPILE_HEADERS>>>)
  target_compile_options(${name} PRIVATE
    $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,${has_copy}>:-Wno-array-bounds;-Wno-stringop-overflow>)
endfunction()

function(attest_precompile_own name)
  if(NOT can_precompile)
    return()
  endif()
  target_precompile_headers(${name} PRIVATE ${attest_outside_headers} ${ARGN})
  attest_use_macros_of_copy(${name})
endfunction()
