#include "schedules/walks/fit_tiles.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "schedules/engine/direction_of.hpp"
#include "schedules/lists/blocks/held_keys.hpp"
#include "schedules/lists/blocks/held_scores.hpp"
#include "schedules/lists/testing/pattern_cases.hpp"

namespace attest::schedules {
namespace {

const char* const kMasks[] = {"blockband_16_2", "blockband_8_3", "block_32_10_1", "blockband_64_0",
                              "blockband_13_1", "window_20_10",  "block_64_25_1", "pairs_4_1"};

// The fewest words of many tiles that fit.
io::Words least_words(std::int64_t fast_words,
                      const std::function<io::Traffic(std::int64_t stays, std::int64_t passes,
                                                      std::int64_t held)>& cost) {
  io::Words least = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t stays : {1, 2, 4, 8, 13, 16, 24, 26, 32, 48, 64}) {
    for (const std::int64_t passes : {1, 2, 4, 8, 13, 16, 32, 64}) {
      for (const std::int64_t held : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24, 32, 48, 64}) {
        const io::Traffic traffic = cost(stays, passes, held);
        if (traffic.peak.words <= fast_words) least = std::min(least, traffic.total_words());
      }
    }
  }
  return least;
}

TEST_CASE("held tiles left open: no others have fewer words by a fiftieth", "[sparse][schedules]") {
  double worst = 0;
  for (const char* mask : kMasks) {
    const Problem problem = Problem::parse(std::string("sq=256,d=64,mask=") + mask);
    const AbiProblem form(problem, 1);
    for (const std::int64_t fast_words : {1024, 300, 4096}) {
      if (fast_words != 1024 && !attest::testing::is_nightly()) continue;
      INFO(mask << " in " << fast_words);
      const auto capacity = io::FastMemory::of_words(fast_words);
      const auto chosen = [&](const char* name) {
        const auto schedule = testing::sparse_schedules().make(name, *form.get(), capacity);
        CHECK(schedule->closed_form().peak.words <= fast_words);
        return schedule->closed_form().total_words();
      };
      const auto check = [&](io::Words words, io::Words least) {
        CHECK(words.value() * 50 <= least.value() * 51);
        worst = std::max(worst,
                         static_cast<double>(words.value()) / static_cast<double>(least.value()));
      };
      check(chosen("block_held_scores"),
            least_words(fast_words, [&](std::int64_t bq, std::int64_t bk, std::int64_t held) {
              return heads_cost(BlockHeldScores{bq, bk, held}, *form.get());
            }));
      check(chosen("block_held_keys"),
            least_words(fast_words, [&](std::int64_t bk, std::int64_t bq, std::int64_t held) {
              return heads_cost(BlockHeldKeys{bk, bq, held}, *form.get());
            }));
    }
  }
  std::printf("held tiles: words over the fewest of many tiles, at most %.4f\n", worst);
}

// The lists of the first batch entry are short, or there are none.
TEST_CASE("tiles are held for the batch entry with the longest lists", "[sparse][schedules]") {
  const auto words = [](const char* schedule, const char* text) {
    const Problem problem = Problem::parse(text);
    const AbiProblem form(problem, 1);
    return testing::sparse_schedules()
        .make(schedule, *form.get(), io::FastMemory::of_words(1024))
        ->closed_form()
        .total_words();
  };
  for (const char* schedule : {"block_held_scores", "block_held_keys"}) {
    INFO(schedule);
    CHECK(words(schedule, "b=2,sq=256,d=64,mask=blockband_16_2+lengths_0_256") ==
          words(schedule, "b=2,sq=256,d=64,mask=blockband_16_2+lengths_256_0"));
  }
}

TEST_CASE("tiles that are given stay", "[sparse][schedules]") {
  const Problem problem = Problem::parse("sq=96,d=8,mask=blockband_16_2");
  const AbiProblem form(problem, 1);
  const auto chosen = [&](const char* text, std::int64_t fast_words) {
    return testing::sparse_schedules()
        .make(text, *form.get(), io::FastMemory::of_words(fast_words))
        ->spec()
        .to_string();
  };
  CHECK(chosen("block_held_scores:bq=6", 400).find("bq=6,") != std::string::npos);
  CHECK(chosen("block_held_scores:bk=5", 400).find("bk=5,") != std::string::npos);
  CHECK(chosen("block_held_keys:held=1", 400).find("held=1") != std::string::npos);
  CHECK(chosen("block_held_pairs:bq=16,iq=5", 400).find("bq=16,bk=16,iq=5,") != std::string::npos);
  // Given tiles that are too large are refused, not made smaller.
  CHECK_THROWS_AS(chosen("block_held_scores:bq=90", 80), io::CapacityExceeded);
  CHECK_THROWS_AS(chosen("block_held_keys:bk=90", 80), io::CapacityExceeded);
}

}  // namespace
}  // namespace attest::schedules
