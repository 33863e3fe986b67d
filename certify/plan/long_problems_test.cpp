#include "certify/plan/long_problems.hpp"

#include <algorithm>
#include <string>

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "fixtures/defects/defect.hpp"
#include "fixtures/defects/loss_defect.hpp"
#include "proptest/judge/run.hpp"
#include "proptest/judge/truth/sample.hpp"
#include "proptest/laws/law.hpp"

namespace attest::certify {
namespace {

using proptest::Case;
using proptest::Tier;

attest_description everything() {
  return fixtures::defective_kernel(fixtures::Defect::none).description;
}

template <class Holds>
bool any(const std::vector<Case>& cases, const Holds& holds) {
  return std::any_of(cases.begin(), cases.end(), [&](const Case& c) { return holds(c.problem); });
}

bool causal_square(const Problem& p, std::int64_t least) {
  return p.seqlen_q == p.seqlen_k && p.seqlen_q >= least && p.mask.window_right == 0;
}

TEST_CASE("every tier has a causal square, decoding over 2^16 keys and as many tokens", "[long]") {
  constexpr std::int64_t kSquare = 2048, kPast = 65536, kManyEntries = 256;
  for (const Tier tier : {Tier::smoke, Tier::fast, Tier::full}) {
    const std::vector<Case> cases = long_cases(everything(), tier, 1);
    CHECK(any(cases, [&](const Problem& p) { return causal_square(p, kSquare); }));
    CHECK(any(cases, [&](const Problem& p) {
      return p.seqlen_q == 1 && p.seqlen_k > kPast && p.mask.window_right == 0;
    }));
    CHECK(any(cases, [&](const Problem& p) { return p.seqlen_q > kPast; }));
    CHECK(any(cases, [&](const Problem& p) {
      if (!p.mask.packed()) return false;
      const Sequence last = p.sequences().back();
      return last.q_begin > kPast && last.k_begin > kPast;
    }));
    CHECK(any(cases, [&](const Problem& p) { return p.batch > kManyEntries; }));
    CHECK(any(cases, proptest::judged_by_sample));
  }
  constexpr std::int64_t kLargeSquare = 8192;
  const auto large = [&](const Problem& p) { return causal_square(p, kLargeSquare); };
  CHECK(any(long_cases(everything(), Tier::full, 1), large));
  CHECK_FALSE(any(long_cases(everything(), Tier::fast, 1), large));
}

// The size of heads for which kernels choose a path, as this file's problems are meant to meet it.
bool heads_between(const Problem& p, std::int64_t above, std::int64_t most) {
  return p.head_dim_qk > above && p.head_dim_qk <= most;
}

TEST_CASE("every tier has long problems with heads of every size", "[long]") {
  struct Size {
    std::int64_t above, most, rows, keys;
  };
  for (const Tier tier : {Tier::smoke, Tier::fast, Tier::full}) {
    const bool smoke = tier == Tier::smoke;
    const std::vector<Case> cases = long_cases(everything(), tier, 1);
    for (const Size& size : {Size{32, 64, smoke ? 1024 : 2048, smoke ? 4096 : 16384},
                             Size{64, 128, smoke ? 1024 : 2048, smoke ? 4096 : 16384},
                             Size{128, 256, 512, 4096}, Size{256, 1024, 256, 1024}}) {
      INFO(proptest::name(tier) << " " << size.most);
      CHECK(any(cases, [&](const Problem& p) {
        return heads_between(p, size.above, size.most) && causal_square(p, size.rows);
      }));
      CHECK(any(cases, [&](const Problem& p) {
        return heads_between(p, size.above, size.most) && p.seqlen_q == 1 &&
               p.seqlen_k >= size.keys;
      }));
    }
  }
}

TEST_CASE("long problems are claimed, and near to what is not", "[long]") {
  attest_description narrow = everything();
  narrow.features = ATTEST_CAUSAL_TOP_LEFT;  // and plain
  narrow.head_dim_multiple = 64;
  const std::vector<Case> cases = long_cases(narrow, Tier::full, 1);
  CHECK(any(cases, [](const Problem& p) {
    return causal_square(p, 2048) && p.mask.align == CausalAlign::top_left && p.head_dim_qk == 64;
  }));
  CHECK(any(cases, [](const Problem& p) { return p.batch > 256; }));
  for (const Case& c : cases) {
    INFO(c.problem.to_string());
    CHECK(proptest::unclaimed(narrow, c.problem, Direction::forward).empty());
  }
  const auto& loss = fixtures::defective_loss_kernel(fixtures::LossDefect::none).description;
  CHECK(long_cases(loss, Tier::full, 1).empty());
}

TEST_CASE("every dtype has a long square and a long row of keys", "[long]") {
  constexpr std::int64_t kSquare = 2048, kPast = 65536;
  for (const Tier tier : {Tier::smoke, Tier::fast}) {
    const std::vector<Case> cases = long_cases(everything(), tier, 1);
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      INFO(proptest::name(tier) << " " << name(dtype));
      CHECK(any(cases,
                [&](const Problem& p) { return p.dtype == dtype && causal_square(p, kSquare); }));
      CHECK(any(cases, [&](const Problem& p) {
        return p.dtype == dtype && p.seqlen_q == 1 && p.seqlen_k > kPast;
      }));
    }
  }
}

TEST_CASE("values of long problems follow from the seed, their sizes do not", "[long]") {
  const auto a = long_cases(everything(), Tier::smoke, 1),
             b = long_cases(everything(), Tier::smoke, 2);
  REQUIRE(a.size() == b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    CHECK(a[k].problem.to_string() == b[k].problem.to_string());
    CHECK(a[k].seed != b[k].seed);
  }
}

// The first law and long problem of the smoke tier that refuse the kernel; "" when none do.
// Forward, which shows most, takes a third of the time.
std::string refusal(const attest_kernel& kernel, std::uint64_t seed) {
  const std::vector<Case> cases = long_cases(kernel.description, Tier::smoke, seed);
  for (const char* law : {"reference_forward", "reference_backward"}) {
    for (const Case& c : cases) {
      const proptest::LawResult result = proptest::find_law(law).check(kernel, c);
      if (result.verdict == Verdict::violated) return std::string(law) + " " + result.message;
    }
  }
  return "";
}

// A kernel whose path for bf16 has the mistake, and no other.
attest_status wrong_in_bf16(const void*, const attest_forward_args* args) {
  const auto defect = args->problem->dtype == ATTEST_BF16
                          ? fixtures::Defect::keys_past_32768_dropped
                          : fixtures::Defect::none;
  const attest_kernel& kernel = fixtures::defective_kernel(defect);
  return kernel.forward(kernel.self, args);
}

TEST_CASE("a mistake in the path of one dtype is refused by a long problem of smoke", "[long]") {
  attest_kernel kernel = fixtures::defective_kernel(fixtures::Defect::none);
  kernel.description.directions = ATTEST_FORWARD;
  kernel.description.dtypes = 1u << ATTEST_F32 | 1u << ATTEST_BF16;
  if (attest::testing::is_nightly()) CHECK(refusal(kernel, 1).empty());
  kernel.forward = wrong_in_bf16;
  CHECK_FALSE(refusal(kernel, 1).empty());
}

TEST_CASE("no long problem of smoke refuses a kernel without a defect", "[long][nightly]") {
  CHECK(refusal(fixtures::defective_kernel(fixtures::Defect::none), 1).empty());
}

TEST_CASE("every defect of long problems is refused by a long problem of smoke",
          "[long][nightly]") {
  for (const fixtures::DefectRecord& record : fixtures::defects()) {
    if (!fixtures::in_long_problems_alone(record.defect)) continue;
    INFO(record.name);
    CHECK_FALSE(refusal(fixtures::defective_kernel(record.defect), 1).empty());
  }
}

}  // namespace
}  // namespace attest::certify
