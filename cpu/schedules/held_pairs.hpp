#pragma once

#include "cpu/schedules/backward_step.hpp"
#include "cpu/schedules/staircase.hpp"

namespace attest::cpu {

/// The pairs of a block of keys stay, or pieces of them, while columns of K, V, dK and dV stay
/// with them and words of Q, dO and dQ pass by: as P for dV, then, when P has been stored, as dP
/// and dS, P passing word by word, for dQ and dK. Few words where keys are seen by few queries.
///
/// Cost:   of a block with pieces of the queries, r the queries of a piece and f those of them that
///         saw no key of an earlier block, n the keys that they see and g those of them that no
///         earlier query sees, z their pairs: reads = r (2 dk + 2 dv + 1) + f dv + (r - f)(dk + 1)
///         + n (2 dk + dv) + (n - g)(dk + dv) + z, writes = r dk + n (dk + dv) + z + f of each
///         piece; queries without a key, and keys without a query, are written; peak = max over the
///         pieces of z + n + f + 2 [cpu/schedules/held_pairs_test]
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
            dlse_parameter(&HeldPairs::dlse)};
  }
  std::int64_t block_k, held, dlse = kNoLseGradient;  // keys of a block, pairs of a piece at most

  /// As HeldScores::fit.
  static void fit(HeldPairs& schedule, const attest_problem& problem, io::FastMemory capacity);

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const ScoreRule& rule = head.rule;
    const io::Range queries = all_rows(head.Q), seen = keys_of(rule, queries);
    const Slow slow{head, machine.workspace(1, most_pairs(rule, queries), "P"),
                    machine.workspace(queries.end, 1, "D")};
    for (const io::Range& blocks : key_blocks(head)) {
      machine.for_tiles(blocks, block_k, [&](io::Range keys) {
        const io::Range block = overlap(seen, keys);
        begin_keys(machine, head, {keys.begin, block.begin});
        begin_keys(machine, head, {block.end, keys.end});
        for (const Pieces& pieces : query_pieces(rule, queries, block, held)) {
          machine.for_tiles(pieces.range, pieces.length, [&](io::Range part) {
            add_piece(machine, slow, piece_of(rule, part, block));
          });
        }
      });
    }
    for (const io::Range& idle : idle_queries(rule, queries)) {
      store_zeros(machine, head.dQ, idle, 1);
    }
  }

  io::Traffic cost(const BackwardHead& head) const;

 private:
  struct Slow {
    const BackwardHead& head;
    io::MutableSlowMatrix P, D;  // P: of one piece after another
  };

  /// Some queries of a block of keys, and the keys that they see: those before `fresh_keys` are
  /// seen by earlier queries; queries before `fresh` saw keys of earlier blocks.
  struct Piece {
    io::Range queries, keys;
    std::int64_t fresh, fresh_keys;

    io::Range old_queries() const { return {queries.begin, queries.begin + fresh}; }
    io::Range new_queries() const { return {queries.begin + fresh, queries.end}; }
    io::Range old_keys() const { return {keys.begin, keys.begin + fresh_keys}; }
    io::Range new_keys() const { return {keys.begin + fresh_keys, keys.end}; }
  };
  static Piece piece_of(const ScoreRule& rule, io::Range queries, io::Range block);
  io::Traffic piece_cost(const BackwardHead& head, const HeadShape& s, const Piece& piece) const;
  io::Traffic block_cost(const BackwardHead& head, const HeadShape& s, io::Range keys) const;

  // The keys in blocks of block_k; of problems without a band those that are alike together.
  std::vector<io::Range> key_blocks(const BackwardHead& head) const;
  static std::vector<io::Range> idle_queries(const ScoreRule& rule, io::Range queries);
  std::int64_t most_pairs(const ScoreRule& rule, io::Range queries) const;

  // dK and dV of keys that nobody sees.
  template <class M>
  static void begin_keys(M& machine, const BackwardHead& head, io::Range keys) {
    machine.for_tiles(keys, 1, [&](io::Range key) {
      auto dK = machine.scratch(1, head.K.columns(), "dK");
      auto dV = machine.scratch(1, head.V.columns(), "dV");
      begin_sums(machine, head, key, dK, dV);
      machine.store(dK, head.dK.block(key));
      machine.store(dV, head.dV.block(key));
    });
  }

  template <class M>
  void add_piece(M& machine, const Slow& slow, const Piece& piece) const {
    const BackwardHead& head = slow.head;
    const Staircase stairs(head.rule, piece.queries, piece.keys);
    const io::MutableSlowMatrix P = slow.P.block({0, 1}, {0, stairs.pairs()});
    auto S = machine.scratch(1, stairs.pairs(), "P");
    form_probabilities(machine, head, piece, stairs, S);
    machine.store(S, P);
    add_to_keys(machine, piece, stairs, S, head.dO, {head.dV, head.sums, head.dV_before});
    form_gradients(machine, slow, piece, stairs, S, P);
    add_to_queries(machine, head, piece, stairs, S);
    add_to_keys(machine, piece, stairs, S, head.Q, {head.dK, head.sums, head.dK_before});
  }

  template <class M, class Tile>
  static void form_probabilities(M& machine, const BackwardHead& head, const Piece& piece,
                                 const Staircase& stairs, Tile& S) {
    machine.compute(Fill{0}, S);
    machine.for_tiles(all_columns(head.Q), 1, [&](io::Range column) {
      const auto K = machine.load(head.K.block(piece.keys, column), "K");
      const auto Q = machine.stream(head.Q.block(piece.queries, column), "Q");
      machine.compute(StairProducts{stairs, Passing::queries}, S, Q, K);
    });
    machine.compute(StairScores{head.rule, stairs}, S);
    const auto LSE = machine.stream(head.LSE.block(piece.queries), "LSE");
    machine.compute(StairProbabilities{stairs}, S, LSE);
  }

  // dS = scale P o (dP - D). D is made beside dP when a query comes for the first time.
  template <class M, class Tile>
  void form_gradients(M& machine, const Slow& slow, const Piece& piece, const Staircase& stairs,
                      Tile& S, const io::SlowMatrix& P_slow) const {
    const BackwardHead& head = slow.head;
    auto D = machine.scratch(piece.new_queries().count(), 1, "D");
    machine.compute(Fill{0}, D);
    machine.compute(Fill{0}, S);
    machine.for_tiles(all_columns(head.V), 1, [&](io::Range column) {
      const auto V = machine.load(head.V.block(piece.keys, column), "V");
      const auto dO = machine.stream(head.dO.block(piece.queries, column), "dO");
      const auto O = machine.stream(head.O.block(piece.new_queries(), column), "O");
      machine.compute(StairProductsAndDots{stairs, piece.fresh}, S, dO, V, D, O);
    });
    subtract_dlse(machine, head, dlse, piece.new_queries(), D);
    machine.store(D, slow.D.block(piece.new_queries()));
    const auto P = machine.stream(P_slow, "P");
    const auto before = machine.stream(slow.D.block(piece.old_queries()), "D");
    machine.compute(StairGradients{stairs, softmax_scale(head.rule)}, S, P, before, D);
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

  // Sums of keys, and where they begin.
  struct Target {
    io::MutableSlowMatrix to;
    Sums sums;
    io::SlowMatrix before;
  };

  // target += pairs^T rows: dV of P and dO, dK of dS and Q.
  template <class M, class Tile>
  static void add_to_keys(M& machine, const Piece& piece, const Staircase& stairs,
                          const Tile& pairs, const io::SlowMatrix& rows, const Target& target) {
    machine.for_tiles(all_columns(rows), 1, [&](io::Range column) {
      auto sums = machine.scratch(piece.keys.count(), 1, target.to.name());
      machine.compute(Fill{0}, sums);
      if (piece.old_keys().count() > 0) {
        const auto words = machine.stream(target.to.block(piece.old_keys(), column), "sums");
        machine.compute(WordsIn{}, sums, words);
      }
      if (target.sums == Sums::continued && piece.new_keys().count() > 0) {
        const auto words = machine.stream(target.before.block(piece.new_keys(), column), "sums");
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
