#pragma once

#include "schedules/engine/backward_step.hpp"
#include "schedules/walks/key_blocks.hpp"
#include "schedules/walks/mask_hull.hpp"
#include "schedules/walks/staircase.hpp"

namespace attest::cpu {

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
    const Slow slow{head, machine.workspace(queries.end, widest, "P"),
                    machine.workspace(queries.end, 1, "D")};
    const Target dV{head.dV, head.sums, head.dV_before}, dK{head.dK, head.sums, head.dK_before};
    KeyBlocks{block_k, held}.visit(
        machine, head, [&](const Piece& piece) { add_probabilities(machine, slow, piece, dV); },
        [&](io::Range keys) { begin_keys(machine, keys, dV); });
    KeyBlocks{gradient_k, gradients_held}.visit(
        machine, head, [&](const Piece& piece) { add_gradients(machine, slow, piece, dK); },
        [&](io::Range keys) { begin_keys(machine, keys, dK); });
    for (const io::Range& idle : idle_queries(head)) store_zero_words(machine, head.dQ, idle);
  }

  io::Traffic cost(const BackwardHead& head) const;

 private:
  using Piece = KeyBlocks::Piece;

  struct Slow {
    const BackwardHead& head;
    io::MutableSlowMatrix P, D;

    // The pairs of a row of a staircase.
    io::MutableSlowMatrix pairs(const Staircase& stairs, std::int64_t row) const {
      const std::int64_t query = stairs.first_query() + row;
      const io::Range keys = stairs.rows()[static_cast<std::size_t>(row)].keys;
      const std::int64_t first = stairs.first_key() - keys_of(head.rule, {query, query + 1}).begin;
      return P.block({query, query + 1}, {first + keys.begin, first + keys.end});
    }
  };

  // Sums of keys, and where they begin.
  struct Target {
    io::MutableSlowMatrix to;
    Sums sums;
    io::SlowMatrix before;
  };

  enum class Pass : std::uint8_t { probabilities, gradients };
  struct OfPass;  // a schedule whose cost is that of one pass
  io::Traffic pass_cost(const BackwardHead& head, Pass pass) const;
  static std::vector<io::Range> idle_queries(const BackwardHead& head);
  static io::Traffic probabilities_cost(const BackwardHead& head, const Piece& piece);
  io::Traffic gradients_cost(const BackwardHead& head, const Piece& piece) const;

  // Sums of keys that nobody sees.
  template <class M>
  static void begin_keys(M& machine, io::Range keys, const Target& target) {
    for_words(machine, keys, target.to, [&](io::Range key, io::Range column) {
      auto sum = machine.scratch(1, 1, target.to.name());
      begin_sum(machine, sum, target.sums, target.before, key, column);
      machine.store(sum, target.to.block(key, column));
    });
  }

  template <class M>
  static void add_probabilities(M& machine, const Slow& slow, const Piece& piece,
                                const Target& dV) {
    const BackwardHead& head = slow.head;
    const Staircase stairs(head.rule, piece.queries, piece.keys);
    auto P = machine.scratch(1, stairs.pairs(), "P");
    machine.compute(Fill{0}, P);
    machine.for_tiles(all_columns(head.Q), 1, [&](io::Range column) {
      const auto K = machine.load(head.K.block(piece.keys, column), "K");
      const auto Q = machine.stream(head.Q.block(piece.queries, column), "Q");
      machine.compute(StairProducts{stairs, Passing::queries}, P, Q, K);
    });
    machine.compute(StairScores{head.rule, stairs}, P);
    {
      const auto LSE = machine.stream(head.LSE.block(piece.queries), "LSE");
      machine.compute(StairProbabilities{stairs}, P, LSE);
    }
    for (std::int64_t row = 0; row < piece.queries.count(); ++row) {
      auto out = machine.stream_out(slow.pairs(stairs, row), "P");
      machine.compute(StairOut{stairs, row}, P, out);
    }
    add_to_keys(machine, piece, stairs, P, head.dO, dV);
  }

  template <class M>
  void add_gradients(M& machine, const Slow& slow, const Piece& piece, const Target& dK) const {
    const BackwardHead& head = slow.head;
    const Staircase stairs(head.rule, piece.queries, piece.keys);
    auto dS = machine.scratch(1, stairs.pairs(), "dS");
    form_gradients(machine, slow, piece, stairs, dS);
    add_to_queries(machine, head, piece, stairs, dS);
    add_to_keys(machine, piece, stairs, dS, head.Q, dK);
  }

  // dS = scale P o (dP - D). D is made beside dP when a query comes for the first time.
  template <class M, class Tile>
  void form_gradients(M& machine, const Slow& slow, const Piece& piece, const Staircase& stairs,
                      Tile& dS) const {
    const BackwardHead& head = slow.head;
    auto D = machine.scratch(piece.new_queries().count(), 1, "D");
    machine.compute(Fill{0}, D);
    machine.compute(Fill{0}, dS);
    machine.for_tiles(all_columns(head.V), 1, [&](io::Range column) {
      const auto V = machine.load(head.V.block(piece.keys, column), "V");
      const auto dO = machine.stream(head.dO.block(piece.queries, column), "dO");
      const auto O = machine.stream(head.O.block(piece.new_queries(), column), "O");
      machine.compute(StairProductsAndDots{stairs, piece.fresh}, dS, dO, V, D, O);
    });
    subtract_dlse(machine, head, dlse, piece.new_queries(), D);
    machine.store(D, slow.D.block(piece.new_queries()));
    const auto before = machine.stream(slow.D.block(piece.old_queries()), "D");
    for (std::int64_t row = 0; row < piece.queries.count(); ++row) {
      const auto P = machine.stream(slow.pairs(stairs, row), "P");
      machine.compute(StairGradients{stairs, row, softmax_scale(head.rule)}, dS, P, before, D);
    }
  }

  template <class M, class Tile>
  static void add_to_queries(M& machine, const BackwardHead& head, const Piece& piece,
                             const Staircase& stairs, const Tile& dS) {
    machine.for_tiles(all_columns(head.Q), 1, [&](io::Range column) {
      const auto K = machine.load(head.K.block(piece.keys, column), "K");
      const auto add = [&](io::Range queries, const auto& begin) {
        machine.for_tiles(queries, 1, [&](io::Range query) {
          auto dQ = machine.scratch(1, 1, "dQ");
          begin(dQ, query);
          machine.compute(StairSum{stairs, query.begin - piece.queries.begin}, dQ, dS, K);
          machine.store(dQ, head.dQ.block(query, column));
        });
      };
      add(piece.old_queries(),
          [&](auto& dQ, io::Range query) { machine.load_into(dQ, head.dQ.block(query, column)); });
      add(piece.new_queries(), [&](auto& dQ, io::Range) { machine.compute(Fill{0}, dQ); });
    });
  }

  // target += pairs^T rows: dV of P and dO, dK of dS and Q.
  template <class M, class Tile>
  static void add_to_keys(M& machine, const Piece& piece, const Staircase& stairs,
                          const Tile& pairs, const io::SlowMatrix& rows, const Target& target) {
    machine.for_tiles(all_columns(rows), 1, [&](io::Range column) {
      auto sums = machine.scratch(piece.keys.count(), 1, target.to.name());
      machine.compute(Fill{0}, sums);
      if (piece.old_keys().count() > 0) {
        const auto words =
            machine.stream(target.to.block(piece.old_keys(), column), target.to.name());
        machine.compute(WordsIn{}, sums, words);
      }
      if (target.sums == Sums::continued && piece.new_keys().count() > 0) {
        const auto words =
            machine.stream(target.before.block(piece.new_keys(), column), target.to.name());
        machine.compute(WordsIn{piece.fresh_keys}, sums, words);
      }
      {
        const auto words = machine.stream(rows.block(piece.queries, column), rows.name());
        machine.compute(StairSums{stairs, Passing::queries}, sums, pairs, words);
      }
      machine.store(sums, target.to.block(piece.keys, column));
    });
  }
};

}  // namespace attest::cpu
