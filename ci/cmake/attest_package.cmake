# Last in the top CMakeLists: the files that find_package(attest) reads, and what CPack makes of the
# components. attest_targets.cmake is for any language, attest_cxx_targets.cmake for find_package(attest
# COMPONENTS cxx), with a find_dependency line for each outside library that an installed one links; the
# package attest-dev recommends what each is in.
function(attest_install_package)
  include(CMakePackageConfigHelpers)
  attest_write_component_checks()
  get_property(depends GLOBAL PROPERTY ATTEST_INSTALLED_DEPENDS)
  set(ATTEST_FIND_DEPENDENCIES "")
  set(ATTEST_CXX_PACKAGES cmake)  # of Debian
  # target=arguments of find_dependency=package of Debian
  foreach(row "Eigen3::Eigen=Eigen3 3.4 NO_MODULE=libeigen3-dev" "OpenMP::OpenMP_CXX=OpenMP COMPONENTS CXX=g++ | libomp-dev"
              "fmt::fmt=fmt=libfmt-dev" "nlohmann_json::nlohmann_json=nlohmann_json=nlohmann-json3-dev"
              "CLI11::CLI11=CLI11=libcli11-dev" "pugixml::pugixml=pugixml=libpugixml-dev" "hwy::hwy=hwy=libhwy-dev"
              "Boost::headers=Boost=libboost-dev" "OpenSSL::Crypto=OpenSSL COMPONENTS Crypto=libssl-dev"
              "rapidcheck=rapidcheck=librapidcheck-dev" "Catch2::Catch2=Catch2=catch2"
              "CUDA::cudart_static=CUDAToolkit=nvidia-cuda-toolkit" "PkgConfig::MPFR=PkgConfig=pkg-config, libmpfr-dev")
    string(REGEX MATCH "^([^=]+)=([^=]+)=(.*)$" ignored "${row}")
    if("${CMAKE_MATCH_1}" IN_LIST depends)
      list(REMOVE_ITEM depends "${CMAKE_MATCH_1}")
      string(APPEND ATTEST_FIND_DEPENDENCIES "find_dependency(${CMAKE_MATCH_2})\n")
      list(APPEND ATTEST_CXX_PACKAGES "${CMAKE_MATCH_3}")
      if(CMAKE_MATCH_1 STREQUAL "PkgConfig::MPFR")
        string(APPEND ATTEST_FIND_DEPENDENCIES "pkg_check_modules(MPFR REQUIRED IMPORTED_TARGET mpfr gmp)\n")
      endif()
    endif()
  endforeach()
  list(FILTER depends INCLUDE REGEX "::")
  if(depends)
    message(FATAL_ERROR "attest: installed libraries link ${depends}: find_package(attest) needs a line for it here")
  endif()
  get_property(ATTEST_CXX_LIBRARIES GLOBAL PROPERTY ATTEST_CXX_LIBRARIES)
  file(STRINGS ${PROJECT_SOURCE_DIR}/core/abi/attest_kernel.h line REGEX "^#define ATTEST_ABI_VERSION ")
  string(REGEX REPLACE "^.* ([0-9]+)u$" "\\1" ATTEST_KERNEL_ABI_VERSION "${line}")

  set(directory ${CMAKE_INSTALL_LIBDIR}/cmake/attest)
  foreach(set attest_targets attest_cxx_targets)
    install(EXPORT ${set} NAMESPACE attest:: DESTINATION ${directory} COMPONENT development)
  endforeach()
  set(command ${CMAKE_INSTALL_BINDIR}/attest)
  set(libraries ${CMAKE_INSTALL_LIBDIR})
  configure_package_config_file(${PROJECT_SOURCE_DIR}/ci/cmake/attestConfig.cmake.in
    ${PROJECT_BINARY_DIR}/attestConfig.cmake INSTALL_DESTINATION ${directory} PATH_VARS command libraries)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/attestConfigVersion.cmake
    COMPATIBILITY SameMajorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/attestConfig.cmake ${PROJECT_BINARY_DIR}/attestConfigVersion.cmake
                ${PROJECT_SOURCE_DIR}/ci/cmake/attest_certify_library.cmake
                ${PROJECT_SOURCE_DIR}/ci/cmake/attest_other_compiler.cmake
          DESTINATION ${directory} COMPONENT development)
  attest_install_pages()
  attest_describe_debian_packages()
endfunction()

# Messages and --help name pages by docs/how-to/… and schemas by certify/schemas/…. Schemas lie in
# share/attest too, for machines without documentation.
function(attest_install_pages)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(pages ${PROJECT_BINARY_DIR}/pages)
  install(CODE "execute_process(COMMAND [==[${Python3_EXECUTABLE}]==] [==[${PROJECT_SOURCE_DIR}/ci/installed_pages.py]==]
                                        --source [==[${PROJECT_SOURCE_DIR}]==] [==[${pages}]==]
                                COMMAND_ERROR_IS_FATAL ANY)" COMPONENT runtime)
  install(DIRECTORY ${pages}/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime USE_SOURCE_PERMISSIONS)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/certify/schemas/ DESTINATION ${CMAKE_INSTALL_DATADIR}/attest/schemas
          COMPONENT runtime FILES_MATCHING PATTERN "*.json")
endfunction()

# attest (runtime) and attest-dev (development), made by ci/packages.
function(attest_describe_debian_packages)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_NAME attest)
  set(CPACK_PACKAGE_CONTACT "Attest maintainers")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_COMPONENTS_ALL runtime development)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION science)
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME attest)
  set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "command and header\n The command that certifies attention kernels, and attest_kernel.h.")
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
  # Where its own libraries lie, which one of them is linked with another of.
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib/attest)
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "gnuplot-nox, valgrind")
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME attest-dev)
  set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "files of CMake, headers and libraries\n The files that find_package(attest) reads, libraries of C++, the C API.")
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "attest (= ${PROJECT_VERSION})")
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS ON)
  # Of find_package(attest COMPONENTS cxx) alone.
  list(JOIN ATTEST_CXX_PACKAGES ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS)
  include(CPack)
endfunction()
