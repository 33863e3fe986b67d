#include "python/api/isolation.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "certify/digest.hpp"
#include "core/testing/catch.hpp"
#include "python/api/attest_api.h"

namespace attest::python {
namespace {

const char* const kProgram[] = {ATTEST_SERVING_PROGRAM, nullptr};

void refused_as_bad(int outcome, const std::string& words) {
  CHECK(outcome == ATTEST_BAD_INPUT);
  CHECK_THAT(std::string(attest_text()), Catch::Contains(words));
}

TEST_CASE("a kernel of another program", "[python]") {
  const attest_kernel* kernel = nullptr;
  REQUIRE(attest_isolate(kProgram, "timeout=20", &kernel) == ATTEST_PASSED);
  CHECK(std::string(kernel->description.name) == "early_descriptor");
  // It says that it succeeded, and writes nothing.
  CHECK(attest_certify(kernel, nullptr, "cases=1 jobs=2 only=reference_forward", nullptr,
                       nullptr) == ATTEST_REFUSED);
  const auto certificate = nlohmann::json::parse(attest_text());
  CHECK_FALSE(certificate["kernels"][0].contains("not_seen"));
  CHECK(certificate["kernels"][0]["library_sha256"] == certify::sha256_of_file(kProgram[0]));
  attest_release(kernel);
  attest_release(kernel);  // is forgotten
  attest_release(nullptr);
}

TEST_CASE("programs and limits that make no sense", "[python]") {
  const attest_kernel* kernel = nullptr;
  const char* const nothing[] = {nullptr};
  const char* const absent[] = {"/no/such/program", nullptr};
  const char* const silent[] = {"/bin/true", nullptr};
  refused_as_bad(attest_isolate(nullptr, nullptr, &kernel), "command is NULL");
  refused_as_bad(attest_isolate(nothing, nullptr, &kernel), "command is empty");
  refused_as_bad(attest_isolate(kProgram, nullptr, nullptr), "kernel is NULL");
  refused_as_bad(attest_isolate(absent, nullptr, &kernel), "cannot start '/no/such/program'");
  refused_as_bad(attest_isolate(silent, nullptr, &kernel),
                 "loading the kernel ended the process with status 0");
  refused_as_bad(attest_isolate(kProgram, "timeout=0", &kernel), "timeout=0 must be");
  refused_as_bad(attest_isolate(kProgram, "memory=1", &kernel), "unknown option 'memory=1'");
  refused_as_bad(attest_serve(nullptr, nullptr, "no", nullptr),
                 "no certifier started this process");
  CHECK(kernel == nullptr);
}

}  // namespace
}  // namespace attest::python
