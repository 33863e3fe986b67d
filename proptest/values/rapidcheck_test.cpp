// The generator and shrinker as RapidCheck sees them: properties of cases, shrunk by its own loop.
#include <rapidcheck.h>

#include "core/registry.hpp"
#include "core/testing/catch.hpp"
#include "cpu/register.hpp"
#include "fixtures/register.hpp"
#include "proptest/laws/law.hpp"
#include "proptest/values/generator.hpp"

namespace attest::proptest {
namespace {

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.problem.to_string() << " values=" << name(c.values) << " seed=" << c.seed;
}

// A case per (seed, index), shrunk by the order that knows the problem.
rc::Gen<Case> cases(const attest_description& description) {
  const auto drawn = rc::gen::map(rc::gen::arbitrary<std::uint32_t>(), [&](std::uint32_t index) {
    return generate(description, Tier::smoke, 11, index);
  });
  // RapidCheck's own shrinking of the index would only jump between unrelated cases.
  return rc::gen::shrink(rc::gen::noShrink(drawn), [](const Case& c) {
    return rc::seq::fromContainer(shrink_candidates(c));
  });
}

TEST_CASE("a good kernel holds under RapidCheck", "[rapidcheck]") {
  Registry registry;
  register_cpu(registry);
  for (const attest_kernel* kernel : registry.kernels()) {
    CHECK(rc::check(std::string(kernel->description.name) + " lies within its bounds", [&] {
      const Case c = *cases(kernel->description);
      const bool attention = (kernel->description.directions & ATTEST_BACKWARD) != 0;
      const char* law = attention ? "reference_backward" : "reference_loss";
      const LawResult result = find_law(law).check(*kernel, c);
      RC_LOG() << c << ": " << result.message << "\n";
      RC_ASSERT(result.verdict != Verdict::violated);
      RC_ASSERT(result.verdict != Verdict::crashed);
    }));
  }
}

TEST_CASE("canonical strings round trip under RapidCheck", "[rapidcheck]") {
  const auto& description = fixtures::defective_kernel(fixtures::Defect::none).description;
  CHECK(rc::check("parse(to_string(p)) is p", [&] {
    const Case c = *cases(description);
    RC_ASSERT(Problem::parse(c.problem.to_string()).to_string() == c.problem.to_string());
  }));
}

TEST_CASE("RapidCheck shrinks a broken kernel to a small case", "[rapidcheck]") {
  const attest_kernel& broken = fixtures::defective_kernel(fixtures::Defect::row_sum_off);
  Case last;
  // rc::check's report of the expected failure goes to stderr; only its result matters here.
  const bool held = rc::check("a kernel whose rows do not sum to one", [&] {
    const Case c = *cases(broken.description);
    const LawResult result = find_law("reference_forward").check(broken, c);
    if (result.verdict != Verdict::violated) return;
    last = c;
    RC_FAIL("violated, as it should be");
  });
  CHECK_FALSE(held);
  CHECK(last.problem.seqlen_q == 1);
  CHECK(last.problem.seqlen_k == 1);
  CHECK(last.problem.num_heads_q == 1);
}

}  // namespace
}  // namespace attest::proptest
