#pragma once

#include <algorithm>
#include <deque>

#include "schedules/engine/backward_step.hpp"
#include "schedules/engine/parameter.hpp"
#include "schedules/engine/rolling_buffer.hpp"
#include "schedules/lists/blocks/unseen.hpp"
#include "schedules/lists/sparse_family.hpp"
#include "schedules/walks/staircase.hpp"
#include "schedules/walks/tile_list.hpp"

namespace attest::sparse {

using cpu::HeadShape;

/// Key blocks stay with the pairs of listed tiles, several at once, while columns of the keys'
/// matrices stay with them and words of the queries' pass by: as P for dV, then, when P has been
/// stored, as dP and dS, P passing word by word, for dQ and dK. Where not all tiles of a block fit
/// they come in pieces. Few words where keys are seen by few queries.
///
/// Cost:   J the keys of a block once for each of its pieces, z the pairs of a tile, of each query
///         from its first visible key to its last, Z those of all tiles, other letters as in
///         schedules/walks/tile_list.hpp: reads = 2 nz_q (dk + dv + 1) - ra + (nz_q -
///         ra) dk + ra dv + J (2 dk + dv) + (J - kc)(dk + dv) + Z + L + 1 + e, e the query blocks
///         without a tile, writes = Z + nz_q dk + J (dk + dv) + ra + (q - ra) dk + (k - kc)(dk +
///         dv); peak = max over the pieces of sum over their tiles (z + r) + keys + f + 4, f the
///         queries that come for the first time [schedules/lists/blocks/block_backward_test "closed
///         forms"]
/// Source: ours.
struct BlockHeldKeys {
  using Head = cpu::BackwardHead;
  static constexpr const char* kName = "block_held_keys";
  static constexpr const char* kDense = "held_pairs";
  static constexpr const char* kSummary =
      "key blocks stay with the pairs of listed tiles, or pieces of them, as P and dS; columns of "
      "all matrices pass by";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .saved = io::SavedOutputs::read};
  static constexpr bool kNoSoftcap = true;
  static constexpr bool kFitsPattern = true;
  static std::vector<cpu::Parameter<BlockHeldKeys>> parameters() {
    return {{"bk", &BlockHeldKeys::block_k, cpu::Extent::keys},
            {"bq", &BlockHeldKeys::block_q, cpu::Extent::queries},
            {"held", &BlockHeldKeys::held, cpu::Extent::queries},
            cpu::dlse_parameter(&BlockHeldKeys::dlse)};
  }
  std::int64_t block_k, block_q, held;  // extents of the tiles, how many a piece has at most
  std::int64_t dlse = cpu::kNoLseGradient;

  /// As BlockHeldScores::fit, keys staying.
  static void fit(BlockHeldKeys& schedule, const attest_problem& problem, io::FastMemory capacity);

  template <io::Machine M>
  void run(M& machine, const cpu::BackwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const TileList list(head.rule, q, k, block_q, block_k, Stay::keys);
    const std::int64_t rows = std::min(held, io::tiles(q, block_q));
    const std::int64_t pairs = std::min(block_q, q) * std::min(block_k, k);
    const Slow slow{head, machine.workspace(rows, pairs, "P"), machine.workspace(q, 1, "D")};
    machine.for_tiles(list.blocks(), block_k, [&](io::Range keys) {
      const ListedTiles tiles(machine, list, keys);
      if (tiles.empty()) begin_unseen_keys(machine, head, keys);
      for (std::int64_t begin = 0, end = 0; begin < tiles.count(); begin = end) {
        end = begin + std::min(held, tiles.count() - begin);
        add_piece(machine, slow, tiles, {begin, end}, keys);
      }
    });
    store_idle_queries(machine, head, list);
  }

  io::Traffic cost(const cpu::BackwardHead& head) const;

 private:
  struct Slow {
    const cpu::BackwardHead& head;
    io::MutableSlowMatrix P, D;  // of a piece, a row for each tile; of all queries
  };

  // The pairs of a listed tile, query by query from the first visible key to the last.
  template <class M>
  struct Held {
    Held(M& machine, const io::SlowMatrix& record_words, const TileList::Entry& listed,
         const cpu::ScoreRule& rule)
        : queries(listed.queries),
          fresh(listed.visit == Visit::first ? queries : io::Range{}),
          stairs(cpu::Staircase::of_mask(rule, listed.queries, listed.keys)),
          record(machine.load(record_words, record_words.name())),
          pairs(machine.scratch(1, stairs.pairs(), "pairs")) {}

    io::Range queries, fresh;  // fresh: all of them, or none
    cpu::Staircase stairs;
    decltype(std::declval<M&>().load(std::declval<const io::SlowMatrix&>(), "")) record;
    decltype(std::declval<M&>().scratch(1, 1, "")) pairs;
  };

  template <class M>
  class Piece {
   public:
    Piece(const ListedTiles<M>& list, io::Range numbers, io::Range of_keys,
          const cpu::ScoreRule& rule)
        : keys(of_keys), first(numbers.begin == 0) {
      list.hold(numbers, tiles_, rule);
    }
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;
    ~Piece() {
      while (!tiles_.empty()) tiles_.pop_back();  // fast memory is a stack
    }

    // body(tile, its number in the piece)
    template <class Body>
    void for_each(const Body& body) {
      std::int64_t number = 0;
      for (Held<M>& tile : tiles_) body(tile, number++);
    }

    const io::Range keys;
    const bool first;  // of the block's

   private:
    std::deque<Held<M>> tiles_;
  };

  // Sums of keys, and where they begin.
  struct Target {
    io::MutableSlowMatrix to;
    cpu::Sums sums;
    io::SlowMatrix before;
  };

  template <class M>
  void add_piece(M& machine, const Slow& slow, const ListedTiles<M>& list, io::Range numbers,
                 io::Range keys) const {
    const cpu::BackwardHead& head = slow.head;
    Piece<M> piece(list, numbers, keys, head.rule);
    form_probabilities(machine, slow, piece);
    add_to_keys(machine, piece, head.dO, {head.dV, head.sums, head.dV_before});
    form_gradients(machine, slow, piece);
    add_to_queries(machine, head, piece);
    add_to_keys(machine, piece, head.Q, {head.dK, head.sums, head.dK_before});
  }

  // P = exp(scores - LSE), and stores it.
  template <class M>
  static void form_probabilities(M& machine, const Slow& slow, Piece<M>& piece) {
    const cpu::BackwardHead& head = slow.head;
    piece.for_each([&](auto& tile, std::int64_t) { machine.compute(cpu::Fill{0}, tile.pairs); });
    machine.for_tiles(cpu::all_columns(head.Q), 1, [&](io::Range column) {
      const auto K = machine.load(head.K.block(piece.keys, column), "K");
      piece.for_each([&](auto& tile, std::int64_t) {
        const auto Q = machine.stream(head.Q.block(tile.queries, column), "Q");
        machine.compute(cpu::StairProducts{tile.stairs, cpu::Passing::queries}, tile.pairs, Q, K);
      });
    });
    piece.for_each([&](auto& tile, std::int64_t number) {
      machine.compute(cpu::StairScores{head.rule, tile.stairs}, tile.pairs);
      const auto LSE = machine.stream(head.LSE.block(tile.queries), "LSE");
      machine.compute(cpu::StairProbabilities{tile.stairs}, tile.pairs, LSE);
      machine.store(tile.pairs, slow.P.block({number, number + 1}, {0, tile.stairs.pairs()}));
    });
  }

  // dS = scale P o (dP - D). D is made beside dP when queries come for the first time.
  template <class M>
  void form_gradients(M& machine, const Slow& slow, Piece<M>& piece) const {
    const cpu::BackwardHead& head = slow.head;
    cpu::HeldRows<Column<M>> D;
    piece.for_each([&](auto& tile, std::int64_t number) {
      D.add(&machine, tile.fresh.count());
      machine.compute(cpu::Fill{0}, D[number].words);
      machine.compute(cpu::Fill{0}, tile.pairs);
    });
    machine.for_tiles(cpu::all_columns(head.V), 1, [&](io::Range column) {
      const auto V = machine.load(head.V.block(piece.keys, column), "V");
      piece.for_each([&](auto& tile, std::int64_t number) {
        const auto dO = machine.stream(head.dO.block(tile.queries, column), "dO");
        const auto O = machine.stream(head.O.block(tile.fresh, column), "O");
        const std::int64_t first = tile.queries.count() - tile.fresh.count();
        machine.compute(cpu::StairProductsAndDots{tile.stairs, first}, tile.pairs, dO, V,
                        D[number].words, O);
      });
    });
    piece.for_each([&](auto& tile, std::int64_t number) {
      auto& delta = D[number].words;
      cpu::subtract_dlse(machine, head, dlse, tile.fresh, delta);
      machine.store(delta, slow.D.block(tile.fresh));
      const bool first = tile.fresh.count() > 0;
      const auto before = machine.stream(slow.D.block(first ? io::Range{} : tile.queries), "D");
      for (std::int64_t query = 0; query < tile.queries.count(); ++query) {
        const auto& row = tile.stairs.rows()[static_cast<std::size_t>(query)];
        const auto P = machine.stream(
            slow.P.block({number, number + 1}, {row.place, row.place + row.keys.count()}), "P");
        machine.compute(cpu::StairGradients{tile.stairs, query, cpu::softmax_scale(head.rule)},
                        tile.pairs, P, before, delta);
      }
    });
  }

  template <class M>
  struct Column {
    Column(M* machine, std::int64_t rows) : words(machine->scratch(rows, 1, "D")) {}
    decltype(std::declval<M&>().scratch(1, 1, "")) words;
  };

  // dQ += dS K.
  template <class M>
  static void add_to_queries(M& machine, const cpu::BackwardHead& head, Piece<M>& piece) {
    machine.for_tiles(cpu::all_columns(head.Q), 1, [&](io::Range column) {
      const auto K = machine.load(head.K.block(piece.keys, column), "K");
      piece.for_each([&](auto& tile, std::int64_t) {
        machine.for_tiles(tile.queries, 1, [&](io::Range query) {
          auto dQ = machine.scratch(1, 1, "dQ");
          if (tile.fresh.count() > 0) {
            machine.compute(cpu::Fill{0}, dQ);
          } else {
            machine.load_into(dQ, head.dQ.block(query, column));
          }
          machine.compute(cpu::StairSum{tile.stairs, query.begin - tile.queries.begin}, dQ,
                          tile.pairs, K);
          machine.store(dQ, head.dQ.block(query, column));
        });
      });
    });
  }

  // target += pairs^T rows: dV of P and dO, dK of dS and Q.
  template <class M>
  static void add_to_keys(M& machine, Piece<M>& piece, const io::SlowMatrix& rows,
                          const Target& target) {
    machine.for_tiles(cpu::all_columns(rows), 1, [&](io::Range column) {
      auto sums = machine.scratch(piece.keys.count(), 1, target.to.name());
      if (piece.first) {
        cpu::begin_sum(machine, sums, target.sums, target.before, piece.keys, column);
      } else {
        machine.load_into(sums, target.to.block(piece.keys, column));
      }
      piece.for_each([&](auto& tile, std::int64_t) {
        const auto words = machine.stream(rows.block(tile.queries, column), rows.name());
        machine.compute(cpu::StairSums{tile.stairs, cpu::Passing::queries}, sums, tile.pairs,
                        words);
      });
      machine.store(sums, target.to.block(piece.keys, column));
    });
  }
};

}  // namespace attest::sparse
