#pragma once

#include "schedules/engine/parameter.hpp"
#include "schedules/engine/score_step.hpp"
#include "schedules/walks/mask_hull.hpp"
#include "schedules/walks/staircase.hpp"

namespace attest::schedules {

/// Query blocks stay with scores in place of rows of Q and O, whose columns pass by, and with them
/// the words of K and of V. Where not all scores of a block's bands fit, the keys come in pieces
/// whose scores do: O and the maxima of rows that go on wait in slow memory, float32, their sums
/// stay. Fewer words than flash2 where queries see few keys.
///
/// Cost:   of a block with pieces of the keys, r the queries that a piece sees, n its keys, s those
///         of r that had seen keys before and g those that go on: reads = r dk + n (dk + dv) +
///         s (dv + 1), writes = (r - g)(dv + 1) + g (dv + 1) of each piece; queries without a key
///         are written; peak = max over the pieces of pairs + queries of the block that see a key +
///         s + r + 1  [schedules/bands/held_scores_test]
/// Source: ours.
struct HeldScores {
  using Head = ForwardHead;
  static constexpr const char* kName = "held_scores";
  static constexpr const char* kSummary =
      "query blocks stay with their scores, or pieces of them; columns of Q, K, V and O pass by; "
      "for narrow bands";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static std::vector<Parameter<HeldScores>> parameters() {
    return {{"bq", &HeldScores::block_q, Extent::queries},
            {"held", &HeldScores::held, Extent::pairs}};
  }
  std::int64_t block_q, held;  // queries of a block, pairs of a piece at most
  PreparedHull hull{};

  void prepare(const attest_problem& problem) { hull = PreparedHull(problem); }

  /// Chooses, of blocks up to 64 queries and some beyond, with as many pairs as fit, those that
  /// move the fewest words (schedules/engine/search.hpp, fit_held); values that are not 0 stay.
  static void fit(HeldScores& schedule, const attest_problem& problem, io::FastMemory capacity);

  static constexpr bool kFitsPattern = true;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& of) const {
    const Banded banded(of, hull);
    const ForwardHead& head = banded.head();
    const Slow slow{head, machine.workspace(head.Q.rows(), head.V.columns(), "O before"),
                    machine.workspace(head.Q.rows(), 1, "m")};
    const auto blocks = alike_blocks(head.rule, head.Q.rows(), block_q);
    machine.parallel_tiles(blocks, block_q, [&](auto& block, io::Range queries) {
      const io::Range seeing = queries_of(head.rule, queries, keys_of(head.rule, queries));
      for (const io::Range& idle :
           {io::Range{queries.begin, seeing.begin}, after(queries, seeing)}) {
        if (idle.count() > 0) {
          store_empty_rows(block, head.O.block(idle), head.LSE.block(idle), 1);
        }
      }
      if (seeing.count() == 0) return;
      auto l = block.scratch(seeing.count(), 1, "l");
      block.compute(Fill{0}, l);
      for (const Pieces& pieces : key_pieces(head.rule, seeing, held)) {
        block.for_tiles(pieces.range, pieces.length, [&](io::Range keys) {
          add_piece(block, slow, piece_of(head.rule, seeing, keys), l);
        });
      }
    });
  }

  io::Traffic cost(const ForwardHead& head) const;

 private:
  struct Slow {
    const ForwardHead& head;
    io::MutableSlowMatrix O, m;  // of rows that go on
  };

  /// Some keys of a block of queries, and the queries that see one: those before `fresh` had seen
  /// others, those before `ended` see no others later.
  struct Piece {
    io::Range keys, queries;
    std::int64_t fresh, ended;
    std::int64_t offset;  // of the first query in the block

    io::Range had() const { return {queries.begin, queries.begin + fresh}; }
    io::Range done() const { return {queries.begin, queries.begin + ended}; }
    io::Range going_on() const { return {queries.begin + ended, queries.end}; }
  };
  static Piece piece_of(const ScoreRule& rule, io::Range seeing, io::Range keys);
  static io::Traffic piece_cost(const HeadShape& s, const ScoreRule& rule, io::Range seeing,
                                const Piece& piece);
  io::Traffic block_cost(const HeadShape& s, const ScoreRule& rule, io::Range queries) const;

  static io::Range after(io::Range queries, io::Range seeing) {
    return {std::max(seeing.end, queries.begin), queries.end};
  }

  template <class M, class Tile>
  static void add_piece(M& machine, const Slow& slow, const Piece& piece, Tile& l) {
    const ForwardHead& head = slow.head;
    const Staircase stairs(head.rule, piece.queries, piece.keys);
    auto S = machine.scratch(1, stairs.pairs(), "S");
    machine.compute(Fill{0}, S);
    machine.for_tiles(all_columns(head.Q), 1, [&](io::Range column) {
      const auto Q = machine.load(head.Q.block(piece.queries, column), "Q");
      const auto K = machine.stream(head.K.block(piece.keys, column), "K");
      machine.compute(StairProducts{stairs, Passing::keys}, S, Q, K);
    });
    machine.compute(StairScores{head.rule, stairs}, S);
    auto kept = machine.scratch(piece.fresh, 1, "m before");
    machine.load_into(kept, slow.m.block(piece.had()));
    update_statistics(machine, slow, piece, stairs, S, l, kept);
    machine.for_tiles(all_columns(head.V), 1, [&](io::Range column) {
      add_outputs(machine, slow, piece, stairs, column, S, l, kept);
    });
  }

  template <class M, class Tile>
  static void update_statistics(M& machine, const Slow& slow, const Piece& piece,
                                const Staircase& stairs, Tile& S, Tile& l, Tile& kept) {
    auto m = machine.scratch(piece.queries.count(), 1, "m");
    {
      auto word = machine.scratch(1, 1, "row maximum");
      machine.compute(StairSoftmax{stairs, piece.offset}, S, m, l, kept, word);
    }
    {
      auto out = machine.stream_out(slow.m.block(piece.going_on()), "m");
      machine.compute(RowsOut{piece.ended}, m, out);
    }
    machine.compute(EndStatistics{{piece.ended, piece.offset}}, m, l);
    auto out = machine.stream_out(slow.head.LSE.block(piece.done()), "LSE");
    machine.compute(RowsOut{0}, m, out);
  }

  template <class M, class Tile>
  static void add_outputs(M& machine, const Slow& slow, const Piece& piece, const Staircase& stairs,
                          io::Range column, const Tile& P, const Tile& l, const Tile& kept) {
    const ForwardHead& head = slow.head;
    auto O = machine.scratch(piece.queries.count(), 1, "O");
    machine.compute(Fill{0}, O);
    if (piece.fresh > 0) {
      const auto before = machine.stream(slow.O.block(piece.had(), column), "O before");
      machine.compute(WordsIn{}, O, before);
    }
    machine.compute(RescaleColumn{}, O, kept);
    {
      const auto V = machine.stream(head.V.block(piece.keys, column), "V");
      machine.compute(StairSums{stairs, Passing::keys}, O, P, V);
    }
    machine.compute(EndOutputs{{piece.ended, piece.offset}}, O, l);
    {
      auto out = machine.stream_out(head.O.block(piece.done(), column), "O");
      machine.compute(RowsOut{0}, O, out);
    }
    auto out = machine.stream_out(slow.O.block(piece.going_on(), column), "O before");
    machine.compute(RowsOut{piece.ended}, O, out);
  }
};

}  // namespace attest::schedules
