#include "certify/reproduce/capped_blocks.hpp"

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

constexpr std::int64_t kRows = 64, kHeadDim = 64;

// Counts that are made up, words for a family and a cap.
CountUnderCap made_up(const std::function<std::int64_t(bool square, std::int64_t cap)>& words) {
  return [words](const std::string& family, std::int64_t cap_bytes,
                 const Problem&) -> std::optional<CappedCount> {
    const bool square = family.rfind("square", 0) == 0 || family == "loss_small";
    return CappedCount{family, {{family, 1, cap_bytes, words(square, cap_bytes / 4), 0}}};
  };
}

std::vector<Outcome> outcomes(const CountUnderCap& count) {
  std::vector<Outcome> list;
  for (const Claim& claim : capped_blocks(kRows, kHeadDim, count).claims) {
    list.push_back(claim.outcome);
  }
  return list;
}

TEST_CASE("other counts under a cap have other outcomes", "[reproduce]") {
  constexpr std::int64_t kMany = std::int64_t{1} << 40, kSquare = kHeadDim * kHeadDim;
  using enum Outcome;
  // As claimed: square tiles win exactly below d^2.
  CHECK(outcomes(made_up([](bool square, std::int64_t cap) {
          return square == (cap < kSquare) ? kMany : 2 * kMany;
        })) == std::vector{reproduced, reproduced, reproduced, reproduced});
  // They win above too, or nowhere.
  CHECK(outcomes(made_up([](bool square, std::int64_t) { return square ? kMany : 2 * kMany; })) ==
        std::vector{corrected, corrected, corrected, reproduced});
  CHECK(outcomes(made_up([](bool, std::int64_t) { return kMany; })) ==
        std::vector{not_reproduced, not_reproduced, not_reproduced, reproduced});
  // Below the bounds.
  CHECK(outcomes(made_up([](bool, std::int64_t) { return 1; })).back() == not_reproduced);
  // Where FlashAttention's order has no tile that fits, square tiles are ahead.
  const CountUnderCap all = made_up([](bool, std::int64_t) { return kMany; });
  CHECK(outcomes([&](const std::string& family, std::int64_t cap, const Problem& problem) {
          const bool flash = family == "flash2" || family == "two_pass" || family == "loss_large";
          return flash && cap / 4 < kSquare ? std::nullopt : all(family, cap, problem);
        }) == std::vector{reproduced, reproduced, reproduced, reproduced});
  // Nothing fits.
  CHECK_THROWS_WITH(outcomes([](auto&&...) { return std::nullopt; }),
                    Catch::Contains("--head-dim 64") && Catch::Contains("give a larger one"));
}

TEST_CASE("emulated counts are at or above the bounds", "[reproduce]") {
  constexpr std::int64_t kWide = 256;  // kernels that fit below d^2
  const Findings findings = capped_blocks(kRows, kWide, emulated_counts());
  REQUIRE(findings.tables.size() == 1);
  CHECK_FALSE(findings.tables[0].rows.empty());
  CHECK(findings.claims.back().outcome == Outcome::reproduced);
}

}  // namespace
}  // namespace attest::certify
