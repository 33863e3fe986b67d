#include "cpu/schedules/held_scores.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "core/testing/catch.hpp"
#include "cpu/register.hpp"
#include "cpu/schedules/family.hpp"
#include "cpu/schedules/kernel.hpp"
#include "cpu/testing/call.hpp"

namespace attest::cpu {
namespace {

Problem random_band(Rng& rng) {
  const auto text = [&rng](std::int64_t least, std::int64_t most) {
    return std::to_string(rng.between(least, most));
  };
  std::string mask =
      rng.between(0, 3) == 0 ? "causal_br" : "window_" + text(0, 9) + "_" + text(0, 9);
  if (rng.between(0, 2) == 0) mask = "window_tl_" + text(0, 9) + "_inf";
  if (rng.between(0, 2) == 0) mask += "+lengths_" + text(0, 20);
  return Problem::parse("sq=" + text(1, 20) + ",sk=20,d=3,dv=2,mask=" + mask);
}

// Pair by pair: K and V of the keys that a block sees, and places for its widest row.
io::Traffic by_hand(const Problem& problem, std::int64_t block) {
  const Sequence sequence = problem.sequences().front();
  const std::int64_t q = problem.seqlen_q, dk = problem.head_dim_qk, dv = problem.head_dim_v;
  std::int64_t reads = 0, peak = 0;
  for (std::int64_t begin = 0; begin < q; begin += block) {
    const std::int64_t rows = std::min(block, q - begin);
    std::int64_t keys = 0, widest = 0;
    for (std::int64_t j = 0; j < problem.seqlen_k; ++j) {
      bool seen = false;
      for (std::int64_t i = begin; i < begin + rows; ++i) {
        seen = seen || problem.mask.visible(sequence, i, j);
      }
      keys += seen ? 1 : 0;
    }
    for (std::int64_t i = begin; i < begin + rows; ++i) {
      std::int64_t row = 0;
      for (std::int64_t j = 0; j < problem.seqlen_k; ++j) {
        row += problem.mask.visible(sequence, i, j) ? 1 : 0;
      }
      widest = std::max(widest, row);
    }
    if (keys == 0) {
      peak = std::max(peak, rows);
      continue;
    }
    reads += rows * dk + keys * (dk + dv);
    peak = std::max(peak, rows * widest + 2 * rows + 1);
  }
  return {HeadShape::real(reads), HeadShape::real(q * (dv + 1)), HeadShape::real(peak)};
}

TEST_CASE("words of held scores, pair by pair", "[cpu][schedules]") {
  Rng rng(31);
  for (int round = 0; round < 300; ++round) {
    const Problem problem = random_band(rng);
    const std::int64_t block = rng.between(1, 22);
    INFO(problem.to_string() << " in blocks of " << block);
    const AbiProblem form(problem, 1);
    CHECK(heads_cost(HeldScores{block}, *form.get()) == by_hand(problem, block));
  }
}

// Its peak is not monotone: the last block of a causal mask may be thin.
TEST_CASE("no block of held scores moves fewer words than the one chosen", "[cpu][schedules]") {
  Rng rng(32);
  int beyond_bisection = 0;
  for (int round = 0; round < 200; ++round) {
    const Problem problem = random_band(rng);
    const AbiProblem form(problem, 1);
    const auto capacity = io::FastMemory::of_words(rng.between(25, 200));
    std::optional<io::Words> least;
    bool fits_before = true;
    for (std::int64_t block = 1; block <= problem.seqlen_q; ++block) {
      const io::Traffic traffic = heads_cost(HeldScores{block}, *form.get());
      const bool fitting = fits(traffic.peak, capacity);
      if (fitting && !fits_before) ++beyond_bisection;
      fits_before = fitting;
      if (fitting && (!least || traffic.total_words() < *least)) least = traffic.total_words();
    }
    INFO(problem.to_string() << " in " << capacity.words << " words");
    if (!least) {
      CHECK_THROWS_AS(cpu_schedules().make("held_scores", *form.get(), capacity),
                      io::CapacityExceeded);
      continue;
    }
    const auto chosen = cpu_schedules().make("held_scores", *form.get(), capacity);
    CHECK(chosen->closed_form().total_words().value() == least->value());
  }
  CHECK(beyond_bisection > 0);
}

TEST_CASE("longer blocks of held scores that fit are found", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=128,d=128,mask=causal_br");
  const AbiProblem form(problem, 1);
  const auto capacity = io::FastMemory::of_words(7569);
  const auto words = [&](std::int64_t block) {
    return heads_cost(HeldScores{block}, *form.get()).total_words();
  };
  // Of blocks that fit 43 is the largest before 64, the least that makes two blocks, which does
  // not.
  const auto chosen = cpu_schedules().make("held_scores", *form.get(), capacity);
  CHECK(chosen->closed_form().total_words() <= words(86));
  CHECK(words(86) < words(43));
  CHECK_FALSE(fits(heads_cost(HeldScores{64}, *form.get()).peak, capacity));
}

// Without a band every query sees the same keys: no row is looked at.
TEST_CASE("long problems are counted at once", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=30000000000,sk=64,d=64");
  const AbiProblem form(problem, 1);
  const auto schedule =
      cpu_schedules().make("held_scores", *form.get(), io::FastMemory::of_words(30000));
  CHECK(schedule->closed_form().peak.words <= 30000);
  const Problem wide = Problem::parse("sq=9,sk=9,d=2,mask=window_4611686018427387904_1");
  CHECK(heads_cost(HeldScores{4}, *AbiProblem(wide, 1).get()) == by_hand(wide, 4));
}

// The blocks of one mask may not fit another of the same sizes.
TEST_CASE("the kernel takes masks of the same sizes in turn", "[cpu][schedules]") {
  for (const char* mask : {"window_1_1", "none", "window_1_1"}) {
    const Problem problem = Problem::parse(std::string("sq=600,sk=600,d=4,mask=") + mask);
    testing::Call call(problem, 3, {testing::Memory::packed, 1, 1, testing::Dlse::absent});
    const attest_forward_args args = call.forward_arguments();
    for (const attest_kernel* kernel : schedule_kernels()) {
      if (std::string(kernel->description.name) != "cpu/schedule/held_scores") continue;
      CHECK(kernel->forward(kernel->self, &args) == ATTEST_OK);
    }
  }
}

}  // namespace
}  // namespace attest::cpu
