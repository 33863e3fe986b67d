#pragma once

#include "schedules/engine/stair_steps.hpp"
#include "schedules/walks/key_blocks.hpp"
#include "schedules/walks/mask_hull.hpp"

namespace attest::schedules {

/// The pairs of a block of keys stay, or pieces of them, while columns of the keys' matrices stay
/// with them and words of the queries' pass by: first as P for dV, stored then, in a second pass
/// with blocks and pieces of its own as dP and dS, P passing word by word, for dQ and dK. Few words
/// where keys are seen by few queries.
///
/// Cost:   z the pairs of a piece, r its queries and f those of them that saw no key of an earlier
///         block, n the keys that they see and g those of them that no earlier query sees:
///         reads = r (dk + dv + 1) + n dk + (n - g) dv and in the second pass r (dk + dv) + f dv +
///         (r - f)(dk + 1) + n (dk + dv) + (n - g) dk + z, writes = n dv + z and r dk + n dk + f;
///         queries without a key, and keys without a query, are written;
///         peak = max over the pieces of z + n + 1, z + n + f + 2 [schedules/bands/held_pairs_test]
/// Source: ours.
struct HeldPairs {
  using Head = BackwardHead;
  static constexpr bool kNoSoftcap = true;
  static constexpr const char* kName = "held_pairs";
  static constexpr const char* kSummary =
      "key blocks stay with their pairs, or pieces of them, as P and dS; columns of all matrices "
      "pass by; for narrow bands";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .saved = io::SavedOutputs::read};
  static std::vector<Parameter<HeldPairs>> parameters() {
    return {{"bk", &HeldPairs::block_k, Extent::keys},
            {"held", &HeldPairs::held, Extent::pairs},
            {"gk", &HeldPairs::gradient_k, Extent::keys},
            {"gheld", &HeldPairs::gradients_held, Extent::pairs},
            dlse_parameter(&HeldPairs::dlse)};
  }
  std::int64_t block_k, held;               // keys of a block, pairs of a piece at most: for P
  std::int64_t gradient_k, gradients_held;  // for dS
  std::int64_t dlse = kNoLseGradient;
  PreparedHull hull{};

  void prepare(const attest_problem& problem) { hull = PreparedHull(problem); }

  /// As HeldScores::fit, for each pass.
  static void fit(HeldPairs& schedule, const attest_problem& problem, io::FastMemory capacity);

  static constexpr bool kFitsPattern = true;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& of) const {
    const Banded banded(of, hull);
    const BackwardHead& head = banded.head();
    const ScoreRule& rule = head.rule;
    const io::Range queries = all_rows(head.Q);
    // Each row from the first key of its band on.
    const std::int64_t widest = most_keys(rule, queries, keys_of(rule, queries));
    const auto P = machine.workspace(queries.end, widest, "P");
    const auto D = machine.workspace(queries.end, 1, "D");
    const auto P_of = [&](const StairTile<M>& tile, std::int64_t, std::int64_t row) {
      const std::int64_t query = tile.queries.begin + row;
      const io::Range keys = tile.stairs.rows()[static_cast<std::size_t>(row)].keys;
      const std::int64_t first = tile.stairs.first_key() - keys_of(rule, {query, query + 1}).begin;
      return P.block({query, query + 1}, {first + keys.begin, first + keys.end});
    };
    KeyBlocks{block_k, held}.visit(
        machine, head,
        [&](const Piece& place) {
          Held<M> piece(machine, "P", rule, place);
          form_probabilities(machine, head, piece, P_of);
          add_to_keys(machine, piece, head.dO, sums_of_dV(head));
        },
        [&](io::Range keys) { store_unseen(machine, sums_of_dV(head), keys); });
    KeyBlocks{gradient_k, gradients_held}.visit(
        machine, head,
        [&](const Piece& place) {
          Held<M> piece(machine, "dS", rule, place);
          form_gradients(machine, head, dlse, piece, D, P_of);
          add_to_queries(machine, head, piece);
          add_to_keys(machine, piece, head.Q, sums_of_dK(head));
        },
        [&](io::Range keys) { store_unseen(machine, sums_of_dK(head), keys); });
    for (const io::Range& idle : idle_queries(head)) store_zero_words(machine, head.dQ, idle);
  }

  io::Traffic cost(const BackwardHead& head) const;

 private:
  using Piece = KeyBlocks::Piece;

  // The pairs of a piece, as one staircase.
  template <class M>
  struct Held {
    Held(M& machine, const char* name, const ScoreRule& rule, const Piece& of)
        : keys(of.keys),
          place(of),
          tile(machine, name, of.queries, of.fresh, Staircase(rule, of.queries, of.keys)) {}

    template <class Body>
    void for_each(const Body& body) {
      body(tile, 0);
    }

    // Keys that earlier queries see have sums already.
    template <class Tile>
    void begin_keys(M& machine, const KeySums& target, io::Range column, Tile& sums) const {
      machine.compute(Fill{0}, sums);
      if (place.old_keys().count() > 0) {
        const auto words =
            machine.stream(target.to.block(place.old_keys(), column), target.to.name());
        machine.compute(WordsIn{}, sums, words);
      }
      if (target.sums == Sums::continued && place.new_keys().count() > 0) {
        const auto words =
            machine.stream(target.before.block(place.new_keys(), column), target.to.name());
        machine.compute(WordsIn{place.fresh_keys}, sums, words);
      }
    }

    io::Range keys;
    Piece place;
    StairTile<M> tile;
  };

  enum class Pass : std::uint8_t { probabilities, gradients };
  struct OfPass;  // a schedule whose cost is that of one pass
  io::Traffic pass_cost(const BackwardHead& head, Pass pass) const;
  static std::vector<io::Range> idle_queries(const BackwardHead& head);
  static io::Traffic probabilities_cost(const BackwardHead& head, const Piece& piece);
  io::Traffic gradients_cost(const BackwardHead& head, const Piece& piece) const;
};

}  // namespace attest::schedules
