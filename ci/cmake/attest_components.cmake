# Components of an installation, and a target that builds each (attest_runtime and so on):
#
#   runtime      the command, libraries that it loads, the header of kernels
#   development  headers and libraries of C++ and of the C API, the files that find_package reads
#   benches      programs that measure
#
# `cmake --install BUILD` takes what has been built and says what has not; with --component all of one
# must have been built.
#
#   attest_note_component(component target)   the target belongs to it
#   attest_check_components()                 before the rooms: install nothing of an incomplete component
#   attest_write_component_checks()           after them
set(ATTEST_COMPONENTS runtime development benches)

function(attest_note_component component name)
  set_property(GLOBAL APPEND PROPERTY ATTEST_COMPONENT_${component} ${name})
endfunction()

function(attest_check_components)
  foreach(component IN LISTS ATTEST_COMPONENTS)
    install(SCRIPT ${PROJECT_BINARY_DIR}/attest_check_${component}.cmake COMPONENT ${component})
  endforeach()
endfunction()

function(attest_write_component_checks)
  foreach(component IN LISTS ATTEST_COMPONENTS)
    get_property(names GLOBAL PROPERTY ATTEST_COMPONENT_${component})
    set(files "")
    foreach(name IN LISTS names)
      string(APPEND files "  [==[$<TARGET_FILE:${name}>]==]\n")
    endforeach()
    add_custom_target(attest_${component})
    add_dependencies(attest_${component} ${names})
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/attest_check_${component}.cmake CONTENT
"cmake_policy(VERSION 3.25)
set(missing \"\")
foreach(file IN ITEMS
${files})
  if(NOT EXISTS \"\${file}\")
    get_filename_component(name \"\${file}\" NAME)
    list(APPEND missing \"\${name}\")
  endif()
endforeach()
list(LENGTH missing count)
list(JOIN missing \" \" words)
set(how [==[cmake --build ${PROJECT_BINARY_DIR} --target attest_${component}]==])
if(\"attest\" IN_LIST missing)
  message(FATAL_ERROR \"attest: the command has not been built; run: \${how}\")
elseif(count AND CMAKE_INSTALL_COMPONENT)
  message(FATAL_ERROR \"attest: ${component}: not built: \${words}; run: \${how}\")
elseif(count)
  message(STATUS \"attest: ${component}: \${count} not built and left out; for all: \${how}\")
endif()
")
  endforeach()
endfunction()
