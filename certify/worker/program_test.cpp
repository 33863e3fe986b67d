#include <sys/wait.h>

#include <filesystem>
#include <string>

#include "certify/worker/process/isolated_kernel.hpp"
#include "certify/worker/process/protocol.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "proptest/laws/law.hpp"

namespace attest::certify::worker {
namespace {

Source program(const std::string& file, std::vector<std::string> words = {}) {
  return {file, std::move(words), {}, "the program", "it", " --like plain"};
}

void refused(const Source& source, const std::string& words) {
  CHECK_THROWS_WITH(isolate_program(source, {}, ""), Catch::Contains(words));
}

TEST_CASE("a program that serves", "[worker]") {
  const IsolatedKernels kernels = isolate_program(program(ATTEST_EARLY_DESCRIPTOR), {}, "its:");
  REQUIRE(kernels.size() == 1);
  const attest_kernel& kernel = kernels.front()->kernel();
  CHECK(std::string(kernel.description.name) == "its:early_descriptor");
  CHECK(is_isolated(kernel));
  CHECK(library_of(kernel) == ATTEST_EARLY_DESCRIPTOR);
  CHECK(isolation_words(kernel) == " --like plain");
}

TEST_CASE("the file that a program tells of is the one that it was", "[worker]") {
  namespace fs = std::filesystem;
  const fs::path copy = fs::absolute("program_test_copy");
  fs::copy_file(ATTEST_EARLY_DESCRIPTOR, copy, fs::copy_options::overwrite_existing);
  const IsolatedKernels kernels = isolate_program(program(copy.string()), {}, "its:");
  const attest_kernel& kernel = kernels.front()->kernel();
  CHECK_NOTHROW(require_same_file(kernel));
  fs::remove(copy);
  CHECK_THROWS_WITH(require_same_file(kernel), Catch::Contains("was written again"));
}

TEST_CASE("a program that does not serve", "[worker]") {
  refused(program("/no/such/program"), "cannot start '/no/such/program'");
  refused(program("/bin/sh", {"-c", "echo out of tea >&2; exit 7"}),
          "the program: it ended the process with status 7: out of tea");
  refused(program("/bin/sh", {"-c", "kill -SEGV $$"}), "the program: it died of signal 11");
}

TEST_CASE("a program of another version", "[worker]") {
  const Layout own = layout_of_messages();
  Layout other = own;
  CHECK(other == own);
  other.version[0] = '9';
  CHECK_FALSE(other == own);
  other = own;
  ++other.call;
  CHECK_FALSE(other == own);
  refused(program("/bin/sh", {"-c", "exit " + std::to_string(kOtherVersion)}),
          "of another version of attest");
}

}  // namespace
}  // namespace attest::certify::worker
