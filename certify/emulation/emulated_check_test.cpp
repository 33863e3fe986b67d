#include "certify/emulation/emulated_check.hpp"

#include <fstream>
#include <iterator>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "cpu/register.hpp"

namespace attest::certify {
namespace {

const Registry& kernels() {
  static const Registry registry = [] {
    Registry all;
    register_emulated(all);
    register_cpu(all);
    return all;
  }();
  return registry;
}

proptest::Case case_of(const char* problem) {
  return {Problem::parse(problem), proptest::Values::normal, 1, 1};
}

TEST_CASE("an emulated kernel runs in every order and leaves the same bits", "[emulation]") {
  const EmulatedCheck found =
      check_emulated(kernels().find("gpu/flash2"), case_of("sq=33,sk=40,d=8,mask=causal_br"),
                     SharedMemoryChecks::off);
  CHECK(found.clean());
  REQUIRE(found.runs.size() == emulation_orders().size());
  for (const EmulatedRun& run : found.runs) {
    CHECK(run.direction == "backward");
    CHECK(run.launches.launches >= 2);
    CHECK(run.launches.shared_bytes > 0);
  }
}

// A kernel whose result depends on how often it was called, emulated or not.
attest_status restless_forward(const void* self, const attest_forward_args* args) {
  static int calls = 0;
  const attest_kernel& of = *static_cast<const attest_kernel*>(self);
  const attest_status status = of.forward(of.self, args);
  static_cast<float*>(args->O->data)[0] += static_cast<float>(++calls);
  return status;
}

TEST_CASE("bits that depend on the order are found", "[emulation]") {
  attest_kernel restless = kernels().find("gpu/flash2");
  restless.self = const_cast<attest_kernel*>(&kernels().find("gpu/flash2"));
  restless.forward = restless_forward;
  restless.workspace_bytes = nullptr;
  restless.description.directions = ATTEST_FORWARD;
  const EmulatedCheck found =
      check_emulated(restless, case_of("sq=3,d=8"), SharedMemoryChecks::off);
  CHECK_FALSE(found.clean());
  CHECK(found.findings.size() == emulation_orders().size() - 1);
  restless.description.numerics.nondeterministic = 1;
  CHECK(check_emulated(restless, case_of("sq=3,d=8"), SharedMemoryChecks::off).clean());
}

TEST_CASE("a diagnosis, a block given up or misconduct is no clean run", "[emulation]") {
  EmulatedCheck found{{{"forward", "ascending", {}, ""}}, {}};
  CHECK(found.clean());
  found.runs[0].launches.diagnoses = {"race"};
  CHECK_FALSE(found.clean());
  found.runs[0].launches = {1, 1, 0, {}};
  CHECK_FALSE(found.clean());
  found.runs[0].launches = {};
  found.runs[0].misconduct = "input Q was modified";
  CHECK_FALSE(found.clean());
}

TEST_CASE("a case without rows is clean, whether or not anything is launched", "[emulation]") {
  for (const char* name : {"gpu/flash2", "gpu/standard", "gpu/flash2_16bit"}) {
    const bool float32 = (kernels().find(name).description.dtypes & 1U << ATTEST_F32) != 0;
    const EmulatedCheck found = check_emulated(
        kernels().find(name), case_of(float32 ? "sq=0,sk=5,d=8" : "sq=0,sk=5,d=8,dtype=bf16"),
        SharedMemoryChecks::off);
    INFO(name);
    CHECK(found.clean());
    CHECK(found.runs.size() == emulation_orders().size());
  }
}

TEST_CASE("the how-to names every emulated kernel", "[emulation]") {
  std::ifstream file(ATTEST_HOW_TO);
  REQUIRE(file);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  Registry emulated;
  register_emulated(emulated);
  for (const std::string& name : emulated.names()) {
    CHECK_THAT(page, Catch::Contains("`" + name + "`"));
  }
}

TEST_CASE("each order is told before it runs", "[emulation]") {
  std::vector<std::string> told;
  check_emulated(kernels().find("gpu/flash2"), case_of("sq=3,d=8"), SharedMemoryChecks::off,
                 [&told](const std::string& order) { told.push_back(order); });
  CHECK(told == emulation_orders());
}

TEST_CASE("what cannot be emulated is refused", "[emulation]") {
  CHECK_THROWS_WITH(
      check_emulated(kernels().find("cpu/flash2"), case_of("sq=3,d=8"), SharedMemoryChecks::off),
      Catch::Contains("launches nothing that is emulated"));
  CHECK_THROWS_WITH(check_emulated(kernels().find("gpu/flash2"), case_of("sq=3,d=8,dtype=f64"),
                                   SharedMemoryChecks::off),
                    Catch::Contains("does not claim this problem: dtype f64"));
}

}  // namespace
}  // namespace attest::certify
