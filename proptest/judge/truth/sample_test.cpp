#include "proptest/judge/truth/sample.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "core/testing/catch.hpp"
#include "fixtures/defects/defect.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

reference::Sample sample(const std::string& problem, std::uint64_t seed) {
  const auto of = sample_of(Problem::parse(problem), seed);
  REQUIRE(of.has_value());
  return *of;
}

TEST_CASE("long sequences alone are sampled", "[sample]") {
  for (const char* whole : {"sq=2048,sk=2048,d=1", "sq=1,sk=4000000,d=1", "sq=0,sk=10,d=1",
                            "sq=10,sk=0,d=1", "b=70,hq=8,sq=512,sk=512,d=1"}) {
    INFO(whole);
    CHECK_FALSE(judged_by_sample(Problem::parse(whole)));
    CHECK_FALSE(sample_of(Problem::parse(whole), 1).has_value());
  }
  for (const char* part : {"sq=2049,sk=2049,d=1", "sq=40000,sk=1,d=1", "d=1,mask=cu_3x4_2100x2100",
                           "sq=2,sk=3000000,d=1", "sq=100000,sk=100000,d=1,mask=causal_br"}) {
    INFO(part);
    CHECK(judged_by_sample(Problem::parse(part)));
  }
  const reference::Sample packed = sample("d=1,mask=cu_3x4_2100x2100", 1);
  CHECK(packed.queries[0] == std::vector<std::int64_t>{0, 1, 2});
  CHECK(packed.keys[0] == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(packed.queries[1].size() < 2100);
}

TEST_CASE("a sample has ends, powers of two and as many at random as it says", "[sample]") {
  constexpr std::int64_t kLength = 70000;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const reference::Sample of = sample("sq=70000,sk=70000,d=1", seed);
    for (const auto& positions : {of.queries[0], of.keys[0]}) {
      CHECK(std::is_sorted(positions.begin(), positions.end()));
      const std::set<std::int64_t> known(positions.begin(), positions.end());
      CHECK(known.size() == positions.size());
      for (const std::int64_t edge :
           {std::int64_t{0}, std::int64_t{1}, kLength - 1, kLength - 2, std::int64_t{1023},
            std::int64_t{1024}, std::int64_t{1025}, std::int64_t{65535}, std::int64_t{65536}}) {
        CHECK(known.count(edge) == 1);
      }
      CHECK(static_cast<std::int64_t>(known.size()) > kRandomPositions);
      CHECK(static_cast<std::int64_t>(known.size()) <= kMostPositions);
    }
    CHECK(of.queries != of.keys);
  }
  CHECK(sample("sq=70000,sk=70000,d=1", 1).queries != sample("sq=70000,sk=70000,d=1", 2).queries);
  CHECK(sample("sq=70000,sk=70000,d=1", 5).queries == sample("sq=70000,sk=70000,d=1", 5).queries);
}

// The promise of docs/theory/sampled-judging.md, over seeds: the share of samples that miss every
// one of some rows, chosen before, is at most (1 - p)^s, but for chance in so many seeds.
TEST_CASE("samples miss no more often than is proved", "[sample]") {
  constexpr std::int64_t kLength = 4000, kSeeds = 3000;
  const Problem problem = Problem::parse("sq=4000,sk=4000,d=1");
  for (const double share : {0.01, 0.03}) {
    // Far from ends, powers of two and edges of tiles, so that only chance finds them.
    std::set<std::int64_t> faulty;
    for (std::int64_t i = 101; static_cast<double>(faulty.size()) < share * kLength; i += 29) {
      if (i % 64 != 0 && i % 64 != 63 && i < 2040) faulty.insert(i);
      if (i >= 2040) break;
    }
    const double p = static_cast<double>(faulty.size()) / kLength;
    double missed = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const auto of = sample_of(problem, seed);
      const auto& rows = of->queries[0];
      missed += std::none_of(rows.begin(), rows.end(),
                             [&](std::int64_t row) { return faulty.count(row) > 0; })
                    ? 1
                    : 0;
    }
    const double proved = std::pow(1 - p, kRandomPositions);
    const double chance = 5 * std::sqrt(proved / kSeeds);
    INFO("share " << p << ": missed " << missed / kSeeds << ", proved " << proved);
    CHECK(missed / kSeeds <= proved + chance);
    CHECK(missed > 0);  // it is a sample
  }
}

LawResult check(const attest_kernel& kernel, const char* law, const std::string& problem) {
  return find_law(law).check(kernel, {Problem::parse(problem), Values::normal, 3, 1});
}

TEST_CASE("a correct kernel passes on samples", "[sample]") {
  const attest_kernel& correct = fixtures::defective_kernel(fixtures::Defect::none);
  for (const char* law : {"reference_forward", "reference_backward"}) {
    for (const char* problem :
         {"sq=2100,sk=2100,d=2,mask=causal_br",
          "hq=2,hkv=1,d=3,mask=cu_5x7_2100x2100_3x0,dtype=bf16", "sq=33000,sk=2,d=1,softcap=2"}) {
      INFO(law << " " << problem);
      const LawResult result = check(correct, law, problem);
      INFO(result.message);
      CHECK(result.verdict == Verdict::passed);
    }
  }
}

TEST_CASE("a wrong kernel is refused on samples, which the reason says", "[sample]") {
  using fixtures::Defect;
  const std::string square = "sq=2100,sk=2100,d=2,mask=causal_br";
  for (const Defect defect : {Defect::keys_past_512_dropped, Defect::causal_off_by_one}) {
    const LawResult result = check(fixtures::defective_kernel(defect), "reference_forward", square);
    CHECK(result.verdict == Verdict::violated);
    CHECK_THAT(result.message, Catch::Contains("sampled elements"));
  }
  for (const Defect defect :
       {Defect::dq_past_256_halved, Defect::dk_past_640_dropped, Defect::dv_halved}) {
    const LawResult result =
        check(fixtures::defective_kernel(defect), "reference_backward", square);
    CHECK(result.verdict == Verdict::violated);
  }
}

// Without LSE, O = 1 is the mean of V as well.
TEST_CASE("a long problem that decoys pass is vacuous", "[sample]") {
  attest_kernel correct = fixtures::defective_kernel(fixtures::Defect::none);
  correct.description.features &= ~static_cast<std::uint32_t>(ATTEST_LSE);
  const Problem square = Problem::parse("sq=2100,sk=2100,d=1,mask=causal_br");
  const LawResult result =
      find_law("reference_forward").check(correct, {square, Values::ones, 3, 1});
  CHECK(result.verdict == Verdict::vacuous);
  CHECK_THAT(result.message, Catch::Contains("mean of V"));
}

}  // namespace
}  // namespace attest::proptest
