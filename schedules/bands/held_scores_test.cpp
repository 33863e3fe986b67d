#include "schedules/bands/held_scores.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "core/testing/kernel_call.hpp"
#include "schedules/dense/kernel.hpp"
#include "schedules/engine/family.hpp"
#include "schedules/register.hpp"
#include "schedules/testing/random_cases.hpp"

namespace attest::schedules {
namespace {

using attest::testing::Call;
using attest::testing::Dlse;
using attest::testing::Memory;

// Pair by pair: of each block pieces of the keys, as many of these as hold no more pairs.
class ByHand {
 public:
  ByHand(const Problem& problem, const HeldScores& schedule)
      : problem_(problem), sequence_(problem.sequences().front()), schedule_(schedule) {}

  io::Traffic traffic() {
    const std::int64_t q = problem_.seqlen_q;
    for (std::int64_t begin = 0; begin < q; begin += schedule_.block_q) {
      add_block(begin, std::min(begin + schedule_.block_q, q));
    }
    return {HeadShape::real(reads_), HeadShape::real(writes_), HeadShape::real(peak_)};
  }

 private:
  bool sees(std::int64_t i, std::int64_t j) const { return problem_.mask.visible(sequence_, i, j); }
  bool sees_one(std::int64_t i, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t j = begin; j < end; ++j) {
      if (sees(i, j)) return true;
    }
    return false;
  }

  void add_block(std::int64_t begin, std::int64_t end) {
    std::vector<std::int64_t> seeing;
    std::int64_t idle = 0;  // of those that follow each other the most
    for (std::int64_t i = begin, run = 0; i < end; ++i) {
      const bool any = sees_one(i, 0, problem_.seqlen_k);
      if (any) seeing.push_back(i);
      run = any ? 0 : run + 1;
      idle = std::max(idle, run);
    }
    writes_ += (end - begin - static_cast<std::int64_t>(seeing.size())) * (problem_.head_dim_v + 1);
    peak_ = std::max(peak_, idle);
    std::int64_t key = 0;
    const auto queries_of_key = [&](std::int64_t j) {
      return std::count_if(seeing.begin(), seeing.end(), [&](auto i) { return sees(i, j); });
    };
    while (key < problem_.seqlen_k) {
      if (queries_of_key(key) == 0) {
        ++key;
        continue;
      }
      std::int64_t stop = key + 1, pairs = queries_of_key(key);
      while (stop < problem_.seqlen_k && queries_of_key(stop) > 0 &&
             pairs + queries_of_key(stop) <= schedule_.held) {
        pairs += queries_of_key(stop++);
      }
      add_piece(seeing, key, stop, pairs);
      key = stop;
    }
  }

  void add_piece(const std::vector<std::int64_t>& seeing, std::int64_t key, std::int64_t stop,
                 std::int64_t pairs) {
    const std::int64_t dk = problem_.head_dim_qk, dv = problem_.head_dim_v;
    std::int64_t queries = 0, before = 0, after = 0;
    for (const std::int64_t i : seeing) {
      if (!sees_one(i, key, stop)) continue;
      ++queries;
      before += sees_one(i, 0, key) ? 1 : 0;
      after += sees_one(i, stop, problem_.seqlen_k) ? 1 : 0;
    }
    reads_ += queries * dk + (stop - key) * (dk + dv) + before * (dv + 1);
    writes_ += queries * (dv + 1);
    if (before > 0) ++later_pieces;
    if (after > 0 && after < queries) ++ragged_pieces;
    peak_ =
        std::max(peak_, pairs + static_cast<std::int64_t>(seeing.size()) + before + queries + 1);
  }

  const Problem& problem_;
  Sequence sequence_;
  HeldScores schedule_;
  std::int64_t reads_ = 0, writes_ = 0, peak_ = 0;

 public:
  int later_pieces = 0, ragged_pieces = 0;
};

TEST_CASE("words of held scores, pair by pair", "[cpu][schedules]") {
  Rng rng(31);
  int later = 0, ragged = 0;
  for (int round = 0; round < 400; ++round) {
    const Problem problem = testing::random_band(rng);
    const HeldScores schedule{rng.between(1, 22), rng.between(1, 120)};
    INFO(problem.to_string() << " in blocks of " << schedule.block_q << ", " << schedule.held
                             << " held");
    const AbiProblem form(problem, 1);
    ByHand hand(problem, schedule);
    CHECK(heads_cost(schedule, *form.get()) == hand.traffic());
    later += hand.later_pieces;
    ragged += hand.ragged_pieces;
  }
  CHECK(later > 0);
  CHECK(ragged > 0);
}

TEST_CASE("tiles left open: no block with as many pairs as fit moves fewer words",
          "[cpu][schedules]") {
  Rng rng(32);
  double worst = 1;
  for (int round = 0; round < 100; ++round) {
    const Problem problem = testing::random_band(rng);
    const AbiProblem form(problem, 1);
    const auto capacity = io::FastMemory::of_words(rng.between(8, 64));
    INFO(problem.to_string() << " in " << capacity.words << " words");
    const io::Words chosen =
        dense_schedules().make("held_scores", *form.get(), capacity)->closed_form().total_words();
    const testing::LeastWords least = testing::least_held_words(
        problem.seqlen_q, capacity, [&](std::int64_t block, std::int64_t held) {
          return heads_cost(HeldScores{block, held}, *form.get());
        });
    CHECK(chosen.value() <= least.with_most_held.value());
    worst = std::max(
        worst, static_cast<double>(chosen.value()) / static_cast<double>(least.of_all.value()));
  }
  std::printf("held scores: words over the fewest of all tiles, at most %.4f\n", worst);
}

// Without a band every query sees the same keys: no row is looked at. In a window blocks away from
// its ends are alike.
TEST_CASE("long problems are counted at once", "[cpu][schedules]") {
  for (const char* text : {"sq=30000000000,sk=64,d=64", "sq=64,sk=30000000000,d=64"}) {
    const Problem problem = Problem::parse(text);
    const AbiProblem form(problem, 1);
    const auto schedule =
        dense_schedules().make("held_scores", *form.get(), io::FastMemory::of_words(30000));
    CHECK(schedule->closed_form().peak.words <= 30000);
    CHECK(schedule->dry_count(io::FastMemory::of_words(30000)).traffic() ==
          schedule->closed_form());
  }
  const Problem wide = Problem::parse("sq=9,sk=9,d=2,mask=window_4611686018427387904_1");
  const HeldScores schedule{4, 7};
  CHECK(heads_cost(schedule, *AbiProblem(wide, 1).get()) == ByHand(wide, schedule).traffic());
}

// They are chosen on a shorter problem, whose rows see fewer keys.
TEST_CASE("tiles of long problems fit these", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=20000,d=64,mask=window_3000_3000");
  const AbiProblem form(problem, 1);
  const auto capacity = io::FastMemory::of_words(16384);
  for (const char* name : {"held_scores", "held_pairs"}) {
    INFO(name);
    const auto schedule = dense_schedules().make(name, *form.get(), capacity);
    CHECK(fits(schedule->closed_form().peak, capacity));
  }
}

// Between widths of which all scores of a block fit and those for which scores are stored.
TEST_CASE("pieces of a band move fewer words than all of it, and than tiles of it",
          "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=1024,d=64,mask=window_52_52");
  const AbiProblem form(problem, 1);
  const auto words = [&](const char* text) {
    return dense_schedules()
        .make(text, *form.get(), io::FastMemory::of_words(1024))
        ->closed_form()
        .total_words();
  };
  CHECK(words("held_scores") < words("held_scores:held=100000"));
  CHECK(words("held_scores") < words("rank1_tiled"));
}

// The blocks of one mask may not fit another of the same sizes.
TEST_CASE("the kernel takes masks of the same sizes in turn", "[cpu][schedules]") {
  for (const char* mask : {"window_1_1", "none", "window_1_1"}) {
    const Problem problem = Problem::parse(std::string("sq=600,sk=600,d=4,mask=") + mask);
    Call call(problem, 3, {Memory::spelled, 1, 1, Dlse::absent});
    const attest_forward_args args = call.forward_arguments();
    for (const attest_kernel* kernel : dense_schedule_kernels()) {
      if (std::string(kernel->description.name) != "cpu/schedule/held_scores") continue;
      CHECK(kernel->forward(kernel->self, &args) == ATTEST_OK);
    }
  }
}

}  // namespace
}  // namespace attest::schedules
