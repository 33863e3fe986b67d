# Part of find_package(attest COMPONENTS cxx): a project's C++ compiler may be another than the one that built
# the package, attest_CXX_COMPILER_ID.

# Code of clang calls the OpenMP runtime of clang, which has what code of g++ calls as well. It comes first, so
# that a program has one runtime.
if(attest_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  file(GLOB attest_llvm_folders /usr/lib/llvm-*/lib)
  find_library(attest_OPENMP_RUNTIME NAMES omp libomp.so.5 HINTS ${attest_llvm_folders})
  mark_as_advanced(attest_OPENMP_RUNTIME)
  unset(attest_llvm_folders)
  if(NOT attest_OPENMP_RUNTIME)
    set(attest_cxx_FOUND FALSE)
    set(attest_NOT_FOUND_MESSAGE "libomp is not there, the OpenMP runtime of clang, which built the libraries of C++ (Debian: libomp5-14).")
    return()
  endif()
  get_target_property(attest_all attest::cxx INTERFACE_LINK_LIBRARIES)
  foreach(attest_one IN LISTS attest_all)
    get_target_property(attest_linked ${attest_one} INTERFACE_LINK_LIBRARIES)
    if(attest_linked MATCHES "OpenMP::OpenMP_CXX")
      list(PREPEND attest_linked "$<LINK_ONLY:${attest_OPENMP_RUNTIME}>")
      set_target_properties(${attest_one} PROPERTIES INTERFACE_LINK_LIBRARIES "${attest_linked}")
    endif()
  endforeach()
  unset(attest_all)
  unset(attest_linked)
endif()

# Others put no hooks before memory accesses: what links the target is refused by this name.
if(TARGET attest::simt_with_hooks AND NOT CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang|AppleClang)$")
  set_property(TARGET attest::simt_with_hooks APPEND PROPERTY INTERFACE_LINK_LIBRARIES
               attest::simt_with_hooks_needs_gcc_or_clang)
endif()
