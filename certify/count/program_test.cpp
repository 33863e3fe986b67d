#include "certify/count/program.hpp"

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

#include "certify/files.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

TEST_CASE("a program's outputs, status and variables", "[program]") {
  const std::string file = "program_test_output.txt";
  std::remove(file.c_str());
  setenv("ATTEST_PROGRAM_TEST", "inherited", 1);
  const auto run = [&](const std::string& script, std::vector<std::string> variables) {
    return run_program({{"sh", "-c", script}, "dash", std::move(variables)}, file);
  };
  const int status = run("echo out; echo err >&2; echo $ATTEST_PROGRAM_TEST; cat; exit 7", {});
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
  CHECK(run("echo $ATTEST_PROGRAM_TEST", {"ATTEST_PROGRAM_TEST=given"}) == 0);
  CHECK(read_file(file) == "out\nerr\ninherited\ngiven\n");
  std::remove(file.c_str());
  unsetenv("ATTEST_PROGRAM_TEST");
  CHECK_THROWS_WITH(run_program({{"no-such-program"}, "its-package", {}}, file),
                    Catch::Contains("cannot start no-such-program") &&
                        Catch::Contains("apt-get install its-package"));
  std::remove(file.c_str());
}

}  // namespace
}  // namespace attest::certify
