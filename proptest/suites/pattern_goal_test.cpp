// The best schedule's words over the lower bounds that know the mask: the goal for patterns, and
// where it is not met.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "io/schedule/best_schedule.hpp"
#include "io/schedule/schedule_count.hpp"
#include "proptest/testing/pattern_bounds.hpp"
#include "proptest/testing/random_masks.hpp"
#include "schedules/register.hpp"

namespace attest::proptest {
namespace {

constexpr std::array kMemories{0.25, 1.0, 4.0, 16.0};  // M / d^2

// Words of the best schedule over the greatest lower bound, at each of kMemories: that for every
// kernel with its inputs and outputs (LSE is one or not), and that for the schedule's own class.
struct Ratios {
  std::array<double, kMemories.size()> of_every{}, of_class{};
};

Ratios ratios_of(const std::string& name, const Problem& problem, Direction direction) {
  Ratios ratios;
  const AbiProblem form(problem, 1);
  REQUIRE(problem.visible_pairs() > 0);  // of nothing every ratio is kept
  const io::PatternDegrees degrees = io::pattern_degrees(problem);
  const testing::BoundsAt by_pattern = testing::bounds_at(direction, degrees);
  for (std::size_t n = 0; n < kMemories.size(); ++n) {
    const auto fast_words = static_cast<std::int64_t>(
        kMemories[n] * static_cast<double>(problem.head_dim_qk * problem.head_dim_qk));
    const auto capacity = io::FastMemory::of_words(fast_words);
    const io::BestSchedule found =
        io::best_schedule(all_schedules(), direction, *form.get(), capacity);
    const auto words = static_cast<double>(found.best().traffic.total_words().value());
    const auto over = [&](const io::KernelClass& kernel) {
      const auto lower = io::greatest(
          testing::all_bounds(direction, degrees.extent, by_pattern, kernel, fast_words));
      REQUIRE(lower);
      const double ratio = words / static_cast<double>(lower->words);
      std::printf(", over %s %lld = %.2f", lower->name.c_str(),
                  static_cast<long long>(lower->words), ratio);
      CHECK(ratio >= 1);
      return ratio;
    };
    std::printf("%-24s M = %6lld: %s %.0f", name.c_str(), static_cast<long long>(fast_words),
                found.best().schedule.c_str(), words);
    const std::string family = io::ScheduleSpec::parse(found.best().schedule).name;
    const auto schedule = all_schedules().make(found.best().schedule, *form.get(), capacity);
    const io::KernelClass kernel = class_of(all_schedules().find(family), *schedule, problem);
    over({});
    ratios.of_every[n] = over({.saved = kernel.saved, .lse = kernel.lse});
    ratios.of_class[n] = over(kernel);
    std::printf("\n");
  }
  return ratios;
}

Problem blocks_of(std::int64_t seqlen, const testing::Sees& sees) {
  Problem problem = Problem::parse("sq=" + std::to_string(seqlen) + ",d=64");
  problem.mask.boolean = testing::mask_of(seqlen, seqlen, sees);
  return problem;
}

Problem with_mask(const std::string& mask, std::int64_t seqlen = 4096) {
  return Problem::parse("sq=" + std::to_string(seqlen) + ",d=64,mask=" + mask);
}

constexpr double kGoal = 2.0;

// The M / d^2 at which the goal is not met, over the bounds for every kernel and over those for the
// schedule's own class.
struct Beyond {
  std::vector<double> every, of_class;
};

struct Measured {
  std::string name;
  Problem problem;
};

void check_goal(const Measured& pattern, Direction direction, const Beyond& beyond) {
  const Ratios ratios = ratios_of(pattern.name, pattern.problem, direction);
  const auto check = [](double ratio, double memory, const std::vector<double>& named) {
    const bool met = std::find(named.begin(), named.end(), memory) == named.end();
    CHECK((ratio <= kGoal) == met);
  };
  for (std::size_t n = 0; n < kMemories.size(); ++n) {
    INFO(pattern.name << ", M = " << kMemories[n] << " d^2: " << ratios.of_every[n] << ", "
                      << ratios.of_class[n]);
    check(ratios.of_every[n], kMemories[n], beyond.every);
    check(ratios.of_class[n], kMemories[n], beyond.of_class);
  }
}

enum class SinglePairs { left_out, included };

std::vector<Measured> patterns_of(std::int64_t seqlen, SinglePairs single_pairs) {
  const auto blocks = [seqlen](const testing::Sees& sees) { return blocks_of(seqlen, sees); };
  const auto block_band = [&](std::int64_t width) {
    return blocks([=](std::int64_t i, std::int64_t j) {
      return i / 64 - j / 64 <= width && j / 64 - i / 64 <= width;
    });
  };
  Rng rng(1);
  const auto random = [&](std::int64_t block, std::int64_t percent) {
    Problem drawn = blocks(testing::random_blocks(rng, seqlen, seqlen, block, percent));
    while (drawn.visible_pairs() == 0) {
      drawn = blocks(testing::random_blocks(rng, seqlen, seqlen, block, percent));
    }
    return drawn;
  };
  std::vector<Measured> patterns{{"full", Problem::parse("sq=" + std::to_string(seqlen) + ",d=64")},
                                 {"causal", with_mask("causal_br", seqlen)},
                                 {"band 65", with_mask("window_32_32", seqlen)},
                                 {"band 257", with_mask("window_128_128", seqlen)},
                                 {"band 513", with_mask("window_256_256", seqlen)},
                                 {"band 1025", with_mask("window_512_512", seqlen)},
                                 {"blocks of 64, diagonal", block_band(0)},
                                 {"blocks of 64, band of 3", block_band(1)},
                                 {"blocks of 64, band of 9", block_band(4)},
                                 {"blocks of 256, 25%", random(256, 25)},
                                 {"blocks of 64, 25%", random(64, 25)}};
  if (single_pairs == SinglePairs::included) {
    patterns.push_back({"single pairs, 5%", random(1, 5)});
    patterns.push_back({"single pairs, 1%", random(1, 1)});
  }
  return patterns;
}

// One of each kind of pattern; all of them nightly, for time.
std::vector<Measured> short_patterns() {
  std::vector<Measured> patterns = patterns_of(512, SinglePairs::left_out);
  if (attest::testing::is_nightly()) return patterns;
  const std::set<std::string> kept{"full", "causal", "band 65", "blocks of 64, diagonal",
                                   "blocks of 64, 25%"};
  std::erase_if(patterns, [&](const Measured& one) { return !kept.contains(one.name); });
  return patterns;
}

// The goal for patterns is 2.0. Where it is not met, docs/theory/bounds/patterns.md says why.
void check_goals(const std::vector<Measured>& patterns, Direction direction,
                 const std::map<std::string, Beyond>& beyond) {
  for (const Measured& pattern : patterns) {
    const auto found = beyond.find(pattern.name);
    check_goal(pattern, direction, found == beyond.end() ? Beyond{} : found->second);
  }
}

// At N = 512, where words are counted in seconds. Single pairs, which the goal does not cover
// (docs/decisions/0017), take two fifths of the time: the long tests have them.
TEST_CASE("best schedule over lower bound on patterns", "[schedules][bounds]") {
  check_goals(short_patterns(), Direction::forward, {});
}

TEST_CASE("best backward schedule over lower bound on patterns", "[schedules][bounds]") {
  check_goals(short_patterns(), Direction::backward, {{"band 65", {{1}, {}}}});
}

// The documentation's, which take minutes: ci/nightly runs them. Random blocks in more draws and
// densities than the patterns of every run.
std::vector<Measured> with_masks(std::vector<Measured> patterns,
                                 std::initializer_list<const char*> masks) {
  for (const char* mask : masks) patterns.push_back({mask, with_mask(mask)});
  return patterns;
}

TEST_CASE("best schedule over lower bound on long patterns", "[.large]") {
  check_goals(
      with_masks(patterns_of(4096, SinglePairs::included),
                 {"block_64_25_1", "block_64_25_2", "block_64_12_1", "block_64_50_1",
                  "block_128_25_1", "block_64_5_1", "block_64_6_1", "block_64_9_1", "block_64_10_2",
                  "block_64_4_1", "block_64_3_1", "block_64_2_1", "block_32_25_1", "window_28_28",
                  "window_52_52", "window_64_64", "blockband_8_6", "blockband_16_2"}),
      Direction::forward,
      {{"block_32_25_1", {{4, 16}, {4, 16}}},
       {"single pairs, 5%", {{0.25, 1, 4, 16}, {0.25, 1, 4, 16}}},
       {"single pairs, 1%", {{0.25, 1, 4, 16}, {0.25, 1, 4, 16}}}});
}

TEST_CASE("best backward schedule over lower bound on long patterns", "[.large]") {
  check_goals(with_masks(patterns_of(4096, SinglePairs::included),
                         {"block_64_25_1", "block_64_25_2", "block_64_12_1", "block_64_50_1",
                          "block_128_25_1", "window_14_14", "window_22_23", "window_35_35",
                          "blockband_4_4", "blockband_8_4", "blockband_16_1"}),
              Direction::backward,
              {{"blocks of 64, 25%", {{16}, {}}},
               {"block_64_25_1", {{16}, {}}},
               {"block_64_25_2", {{16}, {}}},
               {"block_64_50_1", {{16}, {}}},
               {"block_128_25_1", {{16}, {}}},
               {"single pairs, 5%", {{0.25, 1, 4, 16}, {0.25, 1, 4, 16}}},
               {"single pairs, 1%", {{0.25, 1, 4, 16}, {0.25, 1, 4, 16}}}});
}

TEST_CASE("best schedules over lower bounds on random blocks of other shapes", "[.large]") {
  const auto patterns = with_masks({}, {"block_64x128_25_1", "block_128x64_25_1", "block_96_25_1"});
  check_goals(patterns, Direction::forward, {{"block_64x128_25_1", {{16}, {16}}}});
  check_goals(patterns, Direction::backward,
              {{"block_64x128_25_1", {{16}, {16}}},
               {"block_128x64_25_1", {{16}, {16}}},
               {"block_96_25_1", {{16}, {16}}}});
}

// Blocks that a causal mask cuts, and those of butterflies.
TEST_CASE("best schedules over lower bounds on cut blocks and butterflies", "[.large]") {
  const auto patterns = with_masks({}, {"causal_br+block_64_25_1", "causal_br+block_64_50_1",
                                        "butterfly_64", "butterfly_32", "butterfly_128x64"});
  check_goals(patterns, Direction::forward,
              {{"causal_br+block_64_25_1", {{4, 16}, {4, 16}}},
               {"causal_br+block_64_50_1", {{16}, {16}}},
               {"butterfly_32", {{4}, {4}}}});
  check_goals(patterns, Direction::backward,
              {{"causal_br+block_64_25_1", {{4, 16}, {4, 16}}},
               {"causal_br+block_64_50_1", {{16}, {16}}},
               {"butterfly_32", {{1, 4, 16}, {1, 4, 16}}},
               {"butterfly_128x64", {{16}, {16}}}});
}

}  // namespace
}  // namespace attest::proptest
