// Any two kernels agree within the sum of their bounds.
#include "proptest/laws/trials/agreement.hpp"

#include <cstdio>

#include "core/registry.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "cpu/register.hpp"
#include "fixtures/register.hpp"
#include "proptest/values/generator.hpp"

namespace attest::proptest {
namespace {

constexpr std::uint64_t kCases = 40, kSeed = 3;

struct Tally {
  int passed = 0, vacuous = 0, failed = 0;
  std::string first_failure;
};

Tally tally(const attest_kernel& first, const attest_kernel& second) {
  Tally counts;
  for (std::uint64_t index = 0; index < kCases; ++index) {
    const Case c = generate(first.description, Tier::smoke, kSeed, index);
    const LawResult result = check_agreement(first, second, c);
    counts.passed += result.verdict == Verdict::passed ? 1 : 0;
    counts.vacuous += result.verdict == Verdict::vacuous ? 1 : 0;
    if (graver(result.verdict, Verdict::passed) == Verdict::passed) continue;
    ++counts.failed;
    if (counts.first_failure.empty()) {
      counts.first_failure = c.problem.to_string() + ": " + result.message;
    }
  }
  std::printf("%-20s %-20s passed %3d  vacuous %3d  failed %3d\n", first.description.name,
              second.description.name, counts.passed, counts.vacuous, counts.failed);
  return counts;
}

TEST_CASE("every two kernels agree, the float64 one of the fixtures among them", "[agreement]") {
  Registry registry;
  register_cpu(registry);
  std::vector<const attest_kernel*> kernels;
  for (const attest_kernel* kernel : registry.kernels()) {
    if ((kernel->description.directions & ATTEST_FORWARD) != 0) kernels.push_back(kernel);
  }
  kernels.push_back(&fixtures::defective_kernel(fixtures::Defect::none));
  for (std::size_t a = 0; a < kernels.size(); ++a) {
    for (std::size_t b = a + 1; b < kernels.size(); ++b) {
      const Tally counts = tally(*kernels[a], *kernels[b]);
      INFO(counts.first_failure);
      CHECK(counts.failed == 0);
      CHECK(counts.passed > 0);
    }
  }
}

TEST_CASE("a broken kernel agrees with no other, in O, LSE or any gradient", "[agreement]") {
  using fixtures::Defect;
  const attest_kernel& sound = fixtures::defective_kernel(Defect::none);
  for (const Defect defect : {Defect::missing_rescale, Defect::lse_shifted, Defect::delta_omitted,
                              Defect::dk_without_scale, Defect::dv_halved, Defect::nan_output}) {
    const attest_kernel& broken = fixtures::defective_kernel(defect);
    CHECK(tally(sound, broken).failed > 0);
    if (attest::testing::is_nightly()) CHECK(tally(broken, sound).failed > 0);
  }
}

TEST_CASE("kernels of different conventions are not compared", "[agreement]") {
  const attest_kernel& sound = fixtures::defective_kernel(fixtures::Defect::none);
  attest_kernel other = sound;
  other.description.numerics.lse_base_two = 1;
  const Case c = generate(sound.description, Tier::smoke, kSeed, 0);
  CHECK(check_agreement(sound, other, c).verdict == Verdict::unsupported);
}

}  // namespace
}  // namespace attest::proptest
