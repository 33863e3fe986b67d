# Writes OUT, the function that returns the commit of the checkout SOURCE, when the commit changed.
# Empty outside a checkout; "+changes" follows where tracked files differ from the commit.
find_package(Git QUIET)
set(commit "")
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} rev-parse --show-toplevel HEAD
                  RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_QUIET)
  string(REGEX MATCHALL "[^\n]+" lines "${said}")
  list(LENGTH lines said)
  set(top "")
  if(failed EQUAL 0 AND said EQUAL 2)
    list(GET lines 0 top)
  endif()
  # A copy of the sources within another project is none of its commits.
  if("${top}" STREQUAL "${SOURCE}")
    list(GET lines 1 commit)
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} diff-index --quiet HEAD
                    RESULT_VARIABLE changed ERROR_QUIET)
    if(NOT changed EQUAL 0)
      string(APPEND commit "+changes")
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT [[
extern "C" const char* attest_commit();
extern "C" const char* attest_commit() { return "@commit@"; }
]] @ONLY)
