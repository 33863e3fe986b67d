#include "cpu/schedules/held_pairs.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include "core/testing/catch.hpp"
#include "cpu/register.hpp"
#include "cpu/schedules/family.hpp"
#include "cpu/schedules/testing/random_cases.hpp"

namespace attest::cpu {
namespace {

// Pair by pair: of each block of keys pieces of the queries, as many as hold no more pairs.
class ByHand {
 public:
  ByHand(const Problem& problem, const HeldPairs& schedule)
      : problem_(problem), sequence_(problem.sequences().front()), schedule_(schedule) {}

  io::Traffic traffic() {
    const std::int64_t q = problem_.seqlen_q, k = problem_.seqlen_k, dk = problem_.head_dim_qk;
    for (std::int64_t begin = 0; begin < k; begin += schedule_.block_k) {
      add_block(begin, std::min(begin + schedule_.block_k, k));
    }
    for (std::int64_t i = 0; i < q; ++i) {
      if (count(i, i + 1, 0, k) > 0) continue;
      writes_ += dk;
      peak_ = std::max(peak_, dk);
    }
    return {HeadShape::real(reads_), HeadShape::real(writes_), HeadShape::real(peak_)};
  }

 private:
  std::int64_t count(std::int64_t i, std::int64_t i_end, std::int64_t j, std::int64_t j_end) const {
    std::int64_t pairs = 0;
    for (std::int64_t query = i; query < i_end; ++query) {
      for (std::int64_t key = j; key < j_end; ++key) {
        pairs += problem_.mask.visible(sequence_, query, key) ? 1 : 0;
      }
    }
    return pairs;
  }

  void add_block(std::int64_t begin, std::int64_t end) {
    const std::int64_t q = problem_.seqlen_q, both = problem_.head_dim_qk + problem_.head_dim_v;
    for (std::int64_t j = begin; j < end; ++j) {
      if (count(0, q, j, j + 1) > 0) continue;
      writes_ += both;
      peak_ = std::max(peak_, both);
    }
    for (std::int64_t query = 0; query < q;) {
      if (count(query, query + 1, begin, end) == 0) {
        ++query;
        continue;
      }
      std::int64_t stop = query + 1;
      while (stop < q && count(stop, stop + 1, begin, end) > 0 &&
             count(query, stop + 1, begin, end) <= schedule_.held) {
        ++stop;
      }
      add_piece(query, stop, begin, end);
      query = stop;
    }
  }

  void add_piece(std::int64_t query, std::int64_t stop, std::int64_t begin, std::int64_t end) {
    const std::int64_t dk = problem_.head_dim_qk, dv = problem_.head_dim_v;
    std::int64_t fresh = 0, keys = 0, fresh_keys = 0;
    const std::int64_t r = stop - query, z = count(query, stop, begin, end);
    for (std::int64_t i = query; i < stop; ++i) fresh += count(i, i + 1, 0, begin) == 0 ? 1 : 0;
    for (std::int64_t j = begin; j < end; ++j) {
      if (count(query, stop, j, j + 1) == 0) continue;
      ++keys;
      fresh_keys += count(0, query, j, j + 1) == 0 ? 1 : 0;
    }
    const bool given = schedule_.dlse == kLseGradient;
    reads_ += r * (2 * dk + 2 * dv + 1) + fresh * (dv + (given ? 1 : 0)) + (r - fresh) * (dk + 1) +
              keys * (2 * dk + dv) + (keys - fresh_keys) * (dk + dv) + z;
    writes_ += r * dk + keys * (dk + dv) + z + fresh;
    peak_ = std::max(peak_, z + keys + fresh + 2);
    if (fresh_keys < keys && fresh_keys > 0) ++ragged_pieces;
    if (fresh < r && fresh > 0) ++returning_pieces;
  }

  const Problem& problem_;
  Sequence sequence_;
  HeldPairs schedule_;
  std::int64_t reads_ = 0, writes_ = 0, peak_ = 0;

 public:
  int ragged_pieces = 0, returning_pieces = 0;
};

TEST_CASE("words of held pairs, pair by pair", "[cpu][schedules]") {
  Rng rng(33);
  int ragged = 0, returning = 0;
  for (int round = 0; round < 400; ++round) {
    const Problem problem = testing::random_band(rng);
    const HeldPairs schedule{rng.between(1, 22), rng.between(1, 120), rng.between(0, 1)};
    INFO(problem.to_string() << " in blocks of " << schedule.block_k << ", " << schedule.held
                             << " held");
    const AbiProblem form(problem, 1);
    ByHand hand(problem, schedule);
    CHECK(heads_cost(schedule, *form.get()) == hand.traffic());
    ragged += hand.ragged_pieces;
    returning += hand.returning_pieces;
  }
  CHECK(ragged > 0);
  CHECK(returning > 0);
}

TEST_CASE("tiles left open: no block of held pairs with as many as fit moves fewer words",
          "[cpu][schedules]") {
  Rng rng(34);
  double worst = 1;
  for (int round = 0; round < 100; ++round) {
    const Problem problem = testing::random_band(rng);
    const AbiProblem form(problem, 1);
    const auto capacity = io::FastMemory::of_words(rng.between(8, 64));
    INFO(problem.to_string() << " in " << capacity.words << " words");
    const io::Words chosen =
        cpu_schedules().make("held_pairs", *form.get(), capacity)->closed_form().total_words();
    const testing::LeastWords least = testing::least_held_words(
        problem.seqlen_k, capacity, [&](std::int64_t block, std::int64_t held) {
          return heads_cost(HeldPairs{block, held}, *form.get());
        });
    CHECK(chosen.value() <= least.with_most_held.value());
    worst = std::max(
        worst, static_cast<double>(chosen.value()) / static_cast<double>(least.of_all.value()));
  }
  std::printf("held pairs: words over the fewest of all tiles, at most %.4f\n", worst);
}

TEST_CASE("long problems of held pairs are counted at once", "[cpu][schedules]") {
  for (const char* text : {"sq=30000000000,sk=64,d=64", "sq=64,sk=30000000000,d=64"}) {
    const Problem problem = Problem::parse(text);
    const AbiProblem form(problem, 1);
    const auto capacity = io::FastMemory::of_words(30000);
    const auto schedule = cpu_schedules().make("held_pairs", *form.get(), capacity);
    CHECK(schedule->closed_form().peak.words <= 30000);
    CHECK(schedule->dry_count(capacity).traffic() == schedule->closed_form());
  }
}

// Between widths where rows roll and those where P and dS are stored.
TEST_CASE("held pairs are the best on narrow bands in little fast memory", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=1024,d=64,mask=window_14_14");
  const AbiProblem form(problem, 1);
  const auto words = [&](const std::string& text) {
    return cpu_schedules()
        .make(text, *form.get(), io::FastMemory::of_words(1024))
        ->closed_form()
        .total_words();
  };
  for (const char* other : {"rolling_p", "query_stationary_p", "rank1_tiled_bwd", "rolling_keys"}) {
    INFO(other);
    CHECK(words("held_pairs") < words(other));
  }
}

}  // namespace
}  // namespace attest::cpu
