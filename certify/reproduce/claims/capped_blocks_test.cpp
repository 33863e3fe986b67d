#include "certify/reproduce/claims/capped_blocks.hpp"

#include <algorithm>
#include <set>

#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

using Catch::Contains;
using enum Outcome;

constexpr std::int64_t kRows = 64, kHeadDim = 64, kSquare = kHeadDim * kHeadDim, kWordBytes = 4;
constexpr CappedSizes kSizes{kRows, kHeadDim, kHeadDim};
constexpr std::int64_t kMany = std::int64_t{1} << 40;

bool is_square(const std::string& family) {
  return family.rfind("square", 0) == 0 || family == "loss_small";
}

// Counts that are made up, words for a family and a cap; nothing for no words.
CountUnderCap made_up(const std::function<std::int64_t(bool square, std::int64_t cap)>& words) {
  return [words](const std::string& family, std::int64_t cap_bytes,
                 const Problem&) -> std::optional<CappedCount> {
    const std::int64_t count = words(is_square(family), cap_bytes / kWordBytes);
    if (count == 0) return std::nullopt;
    return CappedCount{family, {{family, 1, cap_bytes, 0, 0, count, 0}}};
  };
}

std::vector<Outcome> outcomes(const Findings& findings) {
  std::vector<Outcome> list;
  for (const Claim& claim : findings.claims) list.push_back(claim.outcome);
  return list;
}

// Returns the outcomes of claims below d^2 and from d^2 on, in every direction, and of the bounds.
std::vector<Outcome> each(Outcome below, Outcome from, Outcome bounds = reproduced) {
  return {below, from, below, from, below, from, bounds};
}

Findings found(const std::function<std::int64_t(bool square, std::int64_t cap)>& words) {
  return capped_blocks(kSizes, made_up(words));
}

TEST_CASE("other counts under a cap have other outcomes", "[reproduce]") {
  // As claimed: square tiles win exactly below d^2.
  CHECK(outcomes(found([](bool square, std::int64_t cap) {
          return square == (cap < kSquare) ? kMany : 2 * kMany;
        })) == each(reproduced, reproduced));
  // They win above too, or nowhere.
  CHECK(outcomes(found([](bool square, std::int64_t) { return square ? kMany : 2 * kMany; })) ==
        each(reproduced, not_reproduced));
  CHECK(outcomes(found([](bool square, std::int64_t) { return square ? 2 * kMany : kMany; })) ==
        each(not_reproduced, reproduced));
  CHECK(outcomes(found([](bool, std::int64_t) { return kMany; })) ==
        each(not_reproduced, not_reproduced));
  // Below the bounds.
  CHECK(outcomes(found([](bool, std::int64_t) { return 1; })).back() == not_reproduced);
}

TEST_CASE("where the kernels meet elsewhere the claim names its caps", "[reproduce]") {
  const Findings small = found([](bool square, std::int64_t cap) {
    return square == (cap < kSquare / 2) ? kMany : 2 * kMany;
  });
  CHECK(outcomes(small) == each(corrected, reproduced));
  CHECK_THAT(small.claims[0].measured, Contains("at 8 of 12 caps (512, ") &&
                                           Contains("0.5000 to 2.0000 times its words") &&
                                           Contains("nothing ran on a device"));
  const Findings large = found([](bool square, std::int64_t cap) {
    return square == (cap < kSquare * 2) ? kMany : 2 * kMany;
  });
  CHECK(outcomes(large) == each(reproduced, corrected));
  CHECK_THAT(large.claims[1].measured, Contains("(8192, "));
}

// A kernel without rival is not ahead of any.
TEST_CASE("where FlashAttention's order has no tile that fits nothing is compared", "[reproduce]") {
  const Findings large = found([](bool square, std::int64_t cap) {
    return square || cap >= kSquare ? (square ? 2 * kMany : kMany) : 0;
  });
  CHECK(outcomes(large) == each(not_compared, reproduced));
  CHECK_THAT(large.claims[0].measured,
             Contains("none of 12 caps fits both; square_tiled fits from 512 words on, flash2 fits "
                      "from 4096 words on"));
  CHECK_THAT(large.claims[4].measured, Contains("loss_large or loss_rows fits from 4096 words on"));
  // One cap below d^2 that fits both decides alone.
  const Findings one = found([](bool square, std::int64_t cap) {
    return square ? kMany : cap > 3 * kSquare / 4 ? 2 * kMany : 0;
  });
  CHECK(outcomes(one) == each(reproduced, not_reproduced));
  CHECK_THAT(one.claims[0].measured,
             Contains("at 1 of 1 caps, 0.5000 to") &&
                 Contains("not compared at 11 of 12 caps, which flash2 does not fit"));
  CHECK(outcomes(found([](bool square, std::int64_t) { return square ? kMany : 0; })) ==
        each(not_compared, not_compared));
  CHECK(outcomes(found([](bool, std::int64_t) { return 0; })) ==
        each(not_compared, not_compared, not_compared));
}

TEST_CASE("words in local memory are told", "[reproduce]") {
  const Findings findings = capped_blocks(kSizes, [](const std::string& family,
                                                     std::int64_t cap_bytes, const Problem&) {
    return CappedCount{family, {{family, 1, cap_bytes, 0, is_square(family) ? 0 : 40, kMany, 0}}};
  });
  CHECK_THAT(findings.claims[0].measured, Contains("up to 40 bytes of a lane found no register"));
}

TEST_CASE("caps end at what a block can have", "[reproduce]") {
  std::set<std::int64_t> caps;
  capped_blocks(kSizes, [&](const std::string&, std::int64_t cap_bytes, const Problem&) {
    caps.insert(cap_bytes);
    return std::optional<CappedCount>();
  });
  REQUIRE_FALSE(caps.empty());
  CHECK(*caps.rbegin() == most_block_bytes());
  CHECK(most_block_bytes() == (std::int64_t{227} << 10) + kWordBytes * 65536);
}

TEST_CASE("each variant is emulated once, and is the largest under every cap", "[reproduce]") {
  constexpr std::int64_t kNarrow = 96;
  std::vector<std::string> emulated;
  const CountUnderCap counts = emulated_counts();
  const Findings findings =
      capped_blocks({1, kNarrow, kNarrow},
                    [&](const std::string& family, std::int64_t cap_bytes, const Problem& problem) {
                      std::optional<CappedCount> count = counts(family, cap_bytes, problem);
                      if (count) emulated.push_back(count->schedule);
                      return count;
                    });
  CHECK(std::set(emulated.begin(), emulated.end()).size() == emulated.size());
  REQUIRE(findings.tables.size() == 1);
  CHECK(findings.tables[0].rows.size() > emulated.size());
  const Problem problem = Problem::parse("sq=1,d=96");
  for (const auto& row : findings.tables[0].rows) {
    const std::string family = row[3].substr(0, row[3].find(':'));
    const std::int64_t cap = std::stoll(row[2]);
    INFO(family << " under " << cap);
    CHECK(count_capped(family, cap * kWordBytes, problem).schedule == row[3]);
    CHECK(std::stoll(row[4]) == std::stoll(row[5]) + std::stoll(row[6]));
    CHECK(std::stoll(row[4]) <= cap);
  }
}

TEST_CASE("of FlashAttention's orders the one with fewer words is compared", "[reproduce]") {
  const auto ratio_with = [](std::int64_t rows) {
    const Findings findings = capped_blocks(
        kSizes, [rows](const std::string& family, std::int64_t cap_bytes, const Problem&) {
          const std::int64_t words = family == "loss_rows" ? rows : 2 * kMany;
          return CappedCount{family, {{family, 1, cap_bytes, 0, 0, words, 0}}};
        });
    return findings.claims[5].measured;
  };
  CHECK_THAT(ratio_with(kMany), Contains("2.0000 to 2.0000 times its words"));
  CHECK_THAT(ratio_with(4 * kMany), Contains("1.0000 to 1.0000 times its words"));
}

TEST_CASE("the emulated kernels are compared on both sides of d^2", "[reproduce][nightly]") {
  constexpr std::int64_t kWide = 256, kLossWide = 192;
  const Findings findings = capped_blocks({kRows, kWide, kLossWide}, emulated_counts());
  const std::vector<Outcome> list = outcomes(findings);
  REQUIRE(list.size() == 7);
  for (std::size_t claim = 0; claim < 6; ++claim) {
    INFO(findings.claims[claim].text << ": " << findings.claims[claim].measured);
    CHECK(list[claim] != not_compared);
  }
  CHECK(list[6] == reproduced);  // the bounds
}

}  // namespace
}  // namespace attest::certify
