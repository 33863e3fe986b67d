# Writes OUTPUT, the function attest::certify::commit, for the sources in SOURCE; leaves it as it is where
# nothing changed. A repository around the sources is another project's.
set(commit "")
if(EXISTS "${SOURCE}/.git")
  set(ENV{GIT_OPTIONAL_LOCKS} 0)
  execute_process(COMMAND git -C "${SOURCE}" describe --always --dirty --abbrev=12 --exclude=*
                  OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(NOT commit)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#include \"certify/version/version.hpp\"

const char* attest::certify::commit() { return \"${commit}\"; }
" @ONLY)
