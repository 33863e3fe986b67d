// What the best schedules move against what every kernel of the class must move.
#include "io/best_schedule.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "core/testing/catch.hpp"
#include "cpu/schedules/testing/all_schedules.hpp"
#include "cpu/schedules/testing/random_cases.hpp"
#include "io/bounds/backward.hpp"
#include "io/bounds/forward.hpp"

namespace attest::cpu {
namespace {

std::int64_t lower_bound(const Problem& problem, io::Direction direction, std::int64_t fast_words) {
  const io::Extent extent = io::extent_of(problem);
  const io::KernelClass kernel = io::plain_class(problem);
  const auto bounds = direction == io::Direction::forward
                          ? forward_bounds(extent, kernel, fast_words)
                          : backward_bounds(extent, kernel, fast_words);
  const auto best = greatest(bounds);
  return best ? best->words : 0;
}

TEST_CASE("no schedule moves fewer words than a lower bound", "[cpu][schedules]") {
  Rng rng(77);
  double closest = 1e300;
  for (const auto& family : testing::schedules().families()) {
    const io::Direction direction = family->direction();
    if (direction == io::Direction::loss_gradient) continue;
    for (int round = 0; round < 200; ++round) {
      const Problem problem = testing::random_problem(rng, direction);
      const AbiProblem form(problem, 1);
      const std::string text = testing::random_schedule(rng, *family);
      const auto schedule = testing::schedules().make(text, *form.get(), io::FastMemory{});
      const io::Traffic traffic = schedule->closed_form();
      const std::int64_t bound =
          lower_bound(problem, direction, std::max<std::int64_t>(traffic.peak.words.value(), 1));
      INFO(text << " on " << problem.to_string());
      REQUIRE(traffic.total_words() >= bound);
      if (bound > 0) {
        closest = std::min(closest, static_cast<double>(traffic.total_words().value()) /
                                        static_cast<double>(bound));
      }
    }
  }
  std::printf("closest to a lower bound: %.3f times\n", closest);
}

struct Ratio {
  double to_bound;
  std::string schedule;
};

Ratio best_ratio(const std::string& text, io::Direction direction, std::int64_t fast_words) {
  const Problem problem = Problem::parse(text);
  const AbiProblem form(problem, 1);
  const auto capacity = io::FastMemory::of_words(fast_words);
  const io::BestSchedule found =
      best_schedule(testing::schedules(), direction, *form.get(), capacity);
  const auto schedule = testing::schedules().make(found.best().schedule, *form.get(), capacity);
  CHECK(schedule->dry_count(capacity).traffic() == found.best().traffic);
  const auto words = static_cast<double>(found.best().traffic.total_words().value());
  return {words / static_cast<double>(lower_bound(problem, direction, fast_words)),
          found.best().schedule};
}

// The goals of the cost model, all lower-order terms counted on both sides.
TEST_CASE("the best schedules are near the lower bounds", "[cpu][schedules]") {
  const auto start = std::chrono::steady_clock::now();
  const std::int64_t square = 64 * 64;
  for (const auto& [numerator, denominator] : {std::pair<std::int64_t, std::int64_t>{1, 64},
                                               {1, 16},
                                               {1, 4},
                                               {1, 1},
                                               {2, 1},
                                               {4, 1},
                                               {8, 1}}) {
    const Ratio ratio = best_ratio("sq=4096,sk=4096,d=64", io::Direction::forward,
                                   square * numerator / denominator);
    std::printf("forward  M = %ld/%ld d^2: %.3f of the lower bound, %s\n",
                static_cast<long>(numerator), static_cast<long>(denominator), ratio.to_bound,
                ratio.schedule.c_str());
    const double goal = numerator == 4 ? 1.10 : 1.40;
    CHECK(ratio.to_bound <= goal);
  }
  const Ratio ratio = best_ratio("sq=65536,sk=65536,d=64", io::Direction::backward, 8 * square);
  std::printf("backward M = 8 d^2: %.3f of the lower bound, %s\n", ratio.to_bound,
              ratio.schedule.c_str());
  constexpr double kGoalBackward = 1.20;
  CHECK(ratio.to_bound <= kGoalBackward);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  std::printf("search and dry counts of the table: %.2f s\n", time.count());
}

TEST_CASE("a million keys are counted dry", "[cpu][schedules]") {
  const auto start = std::chrono::steady_clock::now();
  for (const char* mask : {"none", "causal_br"}) {
    const Problem problem = Problem::parse("sq=1000000,sk=1000000,d=64,mask=" + std::string(mask));
    const AbiProblem form(problem, 1);
    for (const char* text : {"flash2:bq=64,bk=64", "flash2_row:bq=64", "key_stationary:bq=64,bk=64",
                             "two_pass_row:bq=64,bk=64"}) {
      INFO(text << " " << mask);
      const auto schedule = testing::schedules().make(text, *form.get(), io::FastMemory{});
      CHECK(schedule->dry_count(io::FastMemory{}).traffic() == schedule->closed_form());
    }
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  std::printf("eight dry counts of a million queries and keys: %.2f s\n", time.count());
}

TEST_CASE("with a capacity in bytes, bytes are compared", "[cpu][schedules]") {
  const Problem problem = Problem::parse("hq=2,sq=512,d=64,dv=32,dtype=bf16");
  const AbiProblem form(problem, 1);
  const auto found = best_schedule(testing::schedules(), io::Direction::forward, *form.get(),
                                   io::FastMemory::of_bytes(32768));
  REQUIRE(found.unit == io::BestSchedule::Unit::bytes);
  bool words_disagree = false;
  for (std::size_t index = 1; index < found.candidates.size(); ++index) {
    const io::Candidate &before = found.candidates[index - 1], &after = found.candidates[index];
    if (!after.refusal.empty()) continue;
    CHECK(before.traffic.total_bytes() <= after.traffic.total_bytes());
    words_disagree |= before.traffic.total_words() > after.traffic.total_words();
  }
  CHECK(words_disagree);
  CHECK_THAT(
      found.to_string(),
      Catch::Contains(std::to_string(found.best().traffic.total_bytes().value()) + " bytes"));
}

TEST_CASE("a count that overflows is no candidate", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=50000000,d=300");
  const AbiProblem form(problem, 1);
  const auto found = best_schedule(testing::schedules(), io::Direction::forward, *form.get(),
                                   io::FastMemory::of_words(2000000));
  CHECK(found.best().refusal.empty());
  CHECK_THAT(found.candidates.back().refusal, Catch::Contains("exceeds 2^63 - 1"));
}

TEST_CASE("the choice is explained", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=100,sk=100,d=8");
  const AbiProblem form(problem, 1);
  const auto found = best_schedule(testing::schedules(), io::Direction::forward, *form.get(),
                                   io::FastMemory::of_words(90));
  CHECK(found.best().refusal.empty());
  for (std::size_t index = 1; index < found.candidates.size(); ++index) {
    const io::Candidate &before = found.candidates[index - 1], &after = found.candidates[index];
    if (!after.refusal.empty()) continue;
    CHECK(before.refusal.empty());
    CHECK(before.traffic.total_words() <= after.traffic.total_words());
  }
  CHECK_THAT(found.to_string(),
             Catch::Contains("standard: none (fast_words: 90, but standard:bm=1,bn=1,bl=1 needs "
                             "102, the least that works; give more)\n"));
  CHECK_THAT(found.to_string(), Catch::StartsWith(found.best().schedule + ": "));
  CHECK_THROWS_WITH(best_schedule(testing::schedules(), io::Direction::forward, *form.get(),
                                  io::FastMemory::of_words(3)),
                    Catch::StartsWith("no forward schedule fits:\nstandard: none (fast_words: 3"));
}

}  // namespace
}  // namespace attest::cpu
