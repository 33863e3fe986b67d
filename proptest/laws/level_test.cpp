#include "proptest/laws/level.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"
#include "proptest/laws/law.hpp"

namespace attest::proptest {
namespace {

constexpr std::uint64_t kSeeds = 64;

const attest_description& plain() {
  return fixtures::defective_kernel(fixtures::Defect::none).description;
}

Case case_of(const std::string& problem, std::uint64_t seed) {
  return {Problem::parse(problem), Values::normal, seed, 1};
}

// Returns the exact shift that the first columns add to every score of a row.
double shift(const Levelled& levelled, std::int64_t i, std::int64_t h) {
  const Problem& p = levelled.problem;
  return p.scale() * levelled.values.Q(0, i, h, 0) * levelled.values.K(0, 0, h / p.group_size(), 0);
}

TEST_CASE("all scores of a row are shifted exactly alike", "[level]") {
  for (const char* dtype : {"f32", "bf16", "f16"}) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const Case c = case_of(
          "hq=4,hkv=2,sq=5,sk=7,d=16,scale=-0.3,softcap=2,dtype=" + std::string(dtype), seed);
      const Levelled levelled = at_level(plain(), c);
      CHECK(levelled.problem.softcap == 0);
      const InputValues before = make_values(levelled.problem, c.values, c.seed);
      const TensorView &Q = levelled.values.Q.view(), &K = levelled.values.K.view();
      for (std::int64_t h = 0; h < 4; ++h) {
        for (std::int64_t i = 0; i < 5; ++i) {
          int exponent = 0;
          CHECK(std::abs(std::frexp(Q(0, i, h, 0), &exponent)) == 0.5);  // a power of two
          for (std::int64_t l = 1; l < 16; ++l) CHECK(Q(0, i, h, l) == before.Q(0, i, h, l));
        }
      }
      for (std::int64_t j = 0; j < 7; ++j) {
        CHECK(K(0, j, 0, 0) == K(0, 0, 0, 0));
        CHECK(K(0, j, 1, 0) == K(0, 0, 0, 0));
        CHECK(round_to(c.problem.dtype, K(0, j, 0, 0)) == K(0, j, 0, 0));
      }
    }
  }
}

// Levels go beyond what stands for minus infinity in public kernels, in every dtype, and exp's
// range.
TEST_CASE("levels reach beyond what stands for minus infinity", "[level]") {
  for (const char* dtype : {"f32", "bf16", "f16"}) {
    INFO(dtype);
    double least = 0, most = 0;
    bool mixed = false;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const Levelled levelled =
          at_level(plain(), case_of("sq=6,sk=3,d=64,dtype=" + std::string(dtype), seed));
      double low = shift(levelled, 0, 0), high = low;
      for (std::int64_t i = 1; i < 6; ++i) {
        low = std::min(low, shift(levelled, i, 0));
        high = std::max(high, shift(levelled, i, 0));
      }
      least = std::min(least, low);
      most = std::max(most, high);
      mixed = mixed || (low < 0 && high > 0);
    }
    CHECK(least < -5e4);
    CHECK(most > 1e4);
    CHECK(mixed);
  }
}

TEST_CASE("levels keep digits where what is declared rounds scores", "[level]") {
  attest_description coarse = plain();
  coarse.numerics.scaled_q_roundoff = 0x1p-9;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    CHECK(std::abs(shift(at_level(coarse, case_of("sq=1,sk=3,d=64", seed)), 0, 0)) <= 128);
  }
}

TEST_CASE("a scale of 0 does not keep scores at 0", "[level]") {
  CHECK(shift(at_level(plain(), case_of("sq=1,sk=3,d=4,scale=0", 1)), 0, 0) != 0);
}

// Other laws see none of these: with ordinary values the kernels are right.
TEST_CASE("what scores far from 0 show is shown by no reference law", "[level]") {
  using fixtures::Defect;
  for (const auto& [defect, problem] :
       {std::pair{Defect::tail_key_in_maximum, "sq=3,sk=7,d=24"},
        std::pair{Defect::tail_key_in_dq, "sq=3,sk=64,d=24"},
        std::pair{Defect::padded_query_weighted, "sq=3,sk=32,d=24"},
        std::pair{Defect::maximum_from_minus_5e4, "sq=3,sk=7,d=24"},
        std::pair{Defect::masked_at_minus_1e4, "sq=3,sk=7,d=24,mask=causal_br"}}) {
    const attest_kernel& kernel = fixtures::defective_kernel(defect);
    INFO(kernel.description.name);
    bool refused = false;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const Case c = case_of(problem, seed);
      for (const char* law : {"reference_forward", "reference_backward"}) {
        CHECK(find_law(law).check(kernel, c).verdict == Verdict::passed);
      }
      refused = refused || find_law("score_level").check(kernel, c).verdict == Verdict::violated;
    }
    CHECK(refused);
  }
}

}  // namespace
}  // namespace attest::proptest
