#include "schedules/bands/held_pairs.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include "core/testing/catch.hpp"
#include "schedules/engine/family.hpp"
#include "schedules/register.hpp"
#include "schedules/testing/random_cases.hpp"

namespace attest::schedules {
namespace {

// Pair by pair, each pass by itself: of each block of keys pieces of the queries, as many as hold
// no more pairs.
class ByHand {
 public:
  ByHand(const Problem& problem, const HeldPairs& schedule)
      : problem_(problem), sequence_(problem.sequences().front()), schedule_(schedule) {}

  io::Traffic traffic() {
    const std::int64_t dk = problem_.head_dim_qk, dv = problem_.head_dim_v;
    pass(schedule_.block_k, schedule_.held, dv, &ByHand::add_probabilities);
    pass(schedule_.gradient_k, schedule_.gradients_held, dk, &ByHand::add_gradients);
    for (std::int64_t i = 0; i < problem_.seqlen_q; ++i) {
      if (count(i, i + 1, 0, problem_.seqlen_k) > 0) continue;
      writes_ += dk;
      peak_ = std::max<std::int64_t>(peak_, 1);
    }
    return {HeadShape::real(reads_), HeadShape::real(writes_), HeadShape::real(peak_)};
  }

 private:
  struct Piece {
    std::int64_t pairs, queries, new_queries, keys, new_keys;
  };
  using Add = void (ByHand::*)(const Piece&);

  std::int64_t count(std::int64_t i, std::int64_t i_end, std::int64_t j, std::int64_t j_end) const {
    std::int64_t pairs = 0;
    for (std::int64_t query = i; query < i_end; ++query) {
      for (std::int64_t key = j; key < j_end; ++key) {
        pairs += problem_.mask.visible(sequence_, query, key) ? 1 : 0;
      }
    }
    return pairs;
  }

  void pass(std::int64_t block, std::int64_t held, std::int64_t columns, Add add) {
    const std::int64_t q = problem_.seqlen_q, k = problem_.seqlen_k;
    for (std::int64_t begin = 0; begin < k; begin += block) {
      const std::int64_t end = std::min(begin + block, k);
      for (std::int64_t j = begin; j < end; ++j) {
        if (count(0, q, j, j + 1) > 0) continue;
        writes_ += columns;
        peak_ = std::max<std::int64_t>(peak_, 1);
      }
      for (std::int64_t query = 0; query < q;) {
        if (count(query, query + 1, begin, end) == 0) {
          ++query;
          continue;
        }
        std::int64_t stop = query + 1;
        while (stop < q && count(stop, stop + 1, begin, end) > 0 &&
               count(query, stop + 1, begin, end) <= held) {
          ++stop;
        }
        (this->*add)(piece_of(query, stop, begin, end));
        query = stop;
      }
    }
  }

  Piece piece_of(std::int64_t query, std::int64_t stop, std::int64_t begin, std::int64_t end) {
    Piece piece{count(query, stop, begin, end), stop - query, 0, 0, 0};
    for (std::int64_t i = query; i < stop; ++i) {
      piece.new_queries += count(i, i + 1, 0, begin) == 0 ? 1 : 0;
    }
    for (std::int64_t j = begin; j < end; ++j) {
      if (count(query, stop, j, j + 1) == 0) continue;
      ++piece.keys;
      piece.new_keys += count(0, query, j, j + 1) == 0 ? 1 : 0;
    }
    if (piece.new_keys < piece.keys && piece.new_keys > 0) ++ragged_pieces;
    if (piece.new_queries < piece.queries && piece.new_queries > 0) ++returning_pieces;
    return piece;
  }

  void add_probabilities(const Piece& piece) {
    const std::int64_t dk = problem_.head_dim_qk, dv = problem_.head_dim_v;
    reads_ += piece.queries * (dk + dv + 1) + piece.keys * dk + (piece.keys - piece.new_keys) * dv;
    writes_ += piece.keys * dv + piece.pairs;
    peak_ = std::max(peak_, piece.pairs + piece.keys + 1);
  }

  void add_gradients(const Piece& piece) {
    const std::int64_t dk = problem_.head_dim_qk, dv = problem_.head_dim_v;
    const std::int64_t given = schedule_.dlse == kLseGradient ? 1 : 0;
    reads_ += piece.queries * (dk + dv) + piece.new_queries * (dv + given) +
              (piece.queries - piece.new_queries) * (dk + 1) + piece.keys * (dk + dv) +
              (piece.keys - piece.new_keys) * dk + piece.pairs;
    writes_ += piece.queries * dk + piece.keys * dk + piece.new_queries;
    peak_ = std::max(peak_, piece.pairs + piece.keys + piece.new_queries + 2);
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
    const HeldPairs schedule{rng.between(1, 22), rng.between(1, 120), rng.between(1, 22),
                             rng.between(1, 120), rng.between(0, 1)};
    INFO(problem.to_string() << " in blocks of " << schedule.block_k << ", " << schedule.held
                             << " held, and of " << schedule.gradient_k << ", "
                             << schedule.gradients_held);
    const AbiProblem form(problem, 1);
    ByHand hand(problem, schedule);
    CHECK(heads_cost(schedule, *form.get()) == hand.traffic());
    ragged += hand.ragged_pieces;
    returning += hand.returning_pieces;
  }
  CHECK(ragged > 0);
  CHECK(returning > 0);
}

// Takes the best tiles of either pass, with the other pass as it is.
TEST_CASE("tiles left open: no block of held pairs with as many as fit moves fewer words",
          "[cpu][schedules]") {
  Rng rng(34);
  double worst = 1;
  for (int round = 0; round < 50; ++round) {
    const Problem problem = testing::random_band(rng);
    const AbiProblem form(problem, 1);
    const auto capacity = io::FastMemory::of_words(rng.between(8, 64));
    INFO(problem.to_string() << " in " << capacity.words << " words");
    HeldPairs chosen{};
    HeldPairs::fit(chosen, *form.get(), capacity);
    const io::Words words = heads_cost(chosen, *form.get()).total_words();
    for (const bool gradients : {false, true}) {
      const testing::LeastWords least = testing::least_held_words(
          problem.seqlen_k, capacity, [&](std::int64_t block, std::int64_t held) {
            HeldPairs tried = chosen;
            (gradients ? tried.gradient_k : tried.block_k) = block;
            (gradients ? tried.gradients_held : tried.held) = held;
            return heads_cost(tried, *form.get());
          });
      CHECK(words.value() <= least.with_most_held.value());
      worst = std::max(
          worst, static_cast<double>(words.value()) / static_cast<double>(least.of_all.value()));
    }
  }
  std::printf("held pairs: words over the fewest of all tiles, at most %.4f\n", worst);
}

// Pieces of a window fit by a few words less each time that less is held.
TEST_CASE("as many pairs are held as fit, not one", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=1024,d=64,mask=window_25_26");
  const AbiProblem form(problem, 1);
  const auto capacity = io::FastMemory::of_words(1024);
  for (std::int64_t block = 1; block <= 64; ++block) {
    HeldPairs schedule{19, 1, block, 0};
    HeldPairs::fit(schedule, *form.get(), capacity);
    INFO(block << " keys, " << schedule.gradients_held << " held");
    CHECK(schedule.gradients_held > capacity.words / 2);
    CHECK(fits(heads_cost(schedule, *form.get()).peak, capacity));
  }
}

TEST_CASE("long problems of held pairs are counted at once", "[cpu][schedules]") {
  for (const char* text : {"sq=30000000000,sk=64,d=64", "sq=64,sk=30000000000,d=64"}) {
    const Problem problem = Problem::parse(text);
    const AbiProblem form(problem, 1);
    const auto capacity = io::FastMemory::of_words(30000);
    const auto schedule = dense_schedules().make("held_pairs", *form.get(), capacity);
    CHECK(schedule->closed_form().peak.words <= 30000);
    CHECK(schedule->dry_count(capacity).traffic() == schedule->closed_form());
  }
}

// Between widths where rows roll and those where P and dS are stored.
TEST_CASE("held pairs are the best on narrow bands in little fast memory", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=1024,d=64,mask=window_14_14");
  const AbiProblem form(problem, 1);
  const auto words = [&](const std::string& text) {
    return dense_schedules()
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
}  // namespace attest::schedules
