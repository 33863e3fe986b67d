#pragma once

#include <algorithm>

#include "schedules/engine/parameter.hpp"
#include "schedules/engine/products.hpp"
#include "schedules/engine/score_step.hpp"
#include "schedules/walks/lists/tile_list.hpp"

/// Forward schedules for fast memory below d^2 words: only the listed tiles of S are formed and
/// kept, side by side in one matrix of block_q rows. The list is read once while they are made,
/// bits and all, and once for each group of columns of V without bits: masked scores are -inf in
/// slow memory. Letters as in schedules/walks/lists/tile_list.hpp, nz the pairs of listed
/// tiles, t their number, T the query blocks.
namespace attest::schedules {

/// The occupied tiles of S: tile `entry` has its rows from 0 on and the columns that it gives.
inline io::MutableSlowMatrix tile_of(const io::MutableSlowMatrix& S, const TileList::Entry& entry) {
  return S.block({0, entry.queries.count()},
                 {entry.first_column, entry.first_column + entry.keys.count()});
}

/// tile += A B in one of the forms of Product, all rows and columns of A and B.
template <io::Machine M, class Kind, class Tile>
void add_product(M& machine, const Kind& product, Tile& tile, const io::SlowMatrix& A,
                 const io::SlowMatrix& B, Form form) {
  product.add(machine, tile, {A, B, {}, form}, {0, tile.rows()}, {0, tile.columns()});
}

/// Each listed tile of S, by a product of either kind: finished, taken into the rows' statistics
/// and stored; LSE of the rows.
template <io::Machine M, class Kind>
void store_listed_scores(M& machine, const ForwardHead& head, const TileList& list,
                         io::Range queries, const io::MutableSlowMatrix& S_slow,
                         const Kind& product) {
  const ListedTiles tiles(machine, list, queries);
  auto m = machine.scratch(queries.count(), 1, "m");
  auto l = machine.scratch(queries.count(), 1, "l");
  machine.compute(StartRows{}, m, l);
  tiles.for_each([&](const TileList::Entry& entry) {
    auto S = machine.scratch(queries.count(), entry.keys.count(), "S");
    machine.compute(Fill{0}, S);
    add_product(machine, product, S, head.Q.block(queries), head.K.block(entry.keys),
                Form::second_transposed);
    machine.compute(FinishScores{head.rule, queries.begin, entry.keys.begin}, S);
    update_statistics(machine, m, l, S);
    machine.store(S, tile_of(S_slow, entry));
  });
  machine.compute(LogSumExp{}, m, l);
  machine.store(m, head.LSE.block(queries));
}

/// O = P V / rowsum(P) with P = exp(S - LSE), in groups of columns; add(O, sums, LSE, entry, group)
/// for each listed tile.
template <io::Machine M, class Add>
void weigh_listed_values(M& machine, const ForwardHead& head, const TileList& list,
                         io::Range queries, std::int64_t columns, const Add& add) {
  const ListedTiles tiles(machine, list, queries);
  const auto LSE = machine.load(head.LSE.block(queries), "LSE");
  machine.for_tiles(all_columns(head.V), columns, [&](io::Range group) {
    auto O = machine.scratch(queries.count(), group.count(), "O");
    auto sums = machine.scratch(queries.count(), 1, "row sums");
    machine.compute(Fill{0}, O);
    machine.compute(Fill{0}, sums);
    tiles.for_each_index([&](const TileList::Entry& entry) { add(O, sums, LSE, entry, group); });
    machine.compute(DivideRows{}, O, sums);
    machine.store(O, head.O.block(queries, group));
  });
}

/// square_tiled over a list of square tiles.
///
/// Cost:   reads = dk (nz_q + nz_k) + L + q + 2 T + (t + nz) ceil(dv/b) + nz_k dv,
///         writes = nz + q + q dv; peak = max over the tiles, and x = min(b, dk), g = min(b, dv),
///         of i j + 2 i + max(1, (i + j) x) + r + 2 and i j + i g + 2 i + j g + 3
///         [schedules/lists/blocks/block_test "closed forms"]
/// Source: Saha and Ye 2024, Algorithm 1, over the tiles of a pattern; ours.
struct BlockSquareTiled {
  using Head = ForwardHead;
  static constexpr const char* kName = "block_square_tiled";
  static constexpr const char* kSource = "this project's own, after Saha and Ye 2024, Algorithm 1";
  static constexpr const char* kDense = "square_tiled";
  static constexpr const char* kSummary =
      "square_tiled over a list of tiles: only those of S are formed and stored, side by side";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static std::vector<Parameter<BlockSquareTiled>> parameters() {
    return {{"b", &BlockSquareTiled::side, Extent::any}};
  }
  std::int64_t side;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    const TileList list(head.rule, head.Q.rows(), head.K.rows(), side, side, Stay::queries);
    const auto S = machine.workspace(std::min(side, head.Q.rows()), list.columns(), "S");
    machine.parallel_tiles(list.blocks(), side, [&](auto& block, io::Range queries) {
      store_listed_scores(block, head, list, queries, S, TiledProduct{side, side, side});
    });
    machine.parallel_tiles(list.blocks(), side, [&](auto& block, io::Range queries) {
      weigh_listed_values(
          block, head, list, queries, side,
          [&](auto& O, auto& sums, const auto& LSE, const TileList::Entry& entry, io::Range group) {
            auto P = block.scratch(queries.count(), entry.keys.count(), "P");
            block.load_into(P, tile_of(S, entry));
            block.compute(Probabilities{}, P, LSE);
            block.compute(AddRowSums{}, sums, P);
            const auto V = block.load(head.V.block(entry.keys, group), "V");
            block.compute(Product{}, O, P, V);
          });
    });
  }

  io::Traffic cost(const ForwardHead& head) const;
};

/// rank1_tiled over a list: both products add rank-1 tiles, a column of Q or P and the words of a
/// row of K or V pass by.
///
/// Cost:   reads and writes as block_square_tiled with ceil(dv/columns) groups;
///         peak = max over the tiles, and g = min(columns, dv), of i j + 3 i + 1 + r + 2 and
///         i g + 3 i + 4  [schedules/lists/blocks/block_test "closed forms"]
/// Source: ours.
struct BlockRank1Tiled {
  using Head = ForwardHead;
  static constexpr const char* kName = "block_rank1_tiled";
  static constexpr const char* kDense = "rank1_tiled";
  static constexpr const char* kSummary =
      "rank1_tiled over a list of tiles: only those of S are formed and stored, side by side";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static std::vector<Parameter<BlockRank1Tiled>> parameters() {
    return {{"bq", &BlockRank1Tiled::block_q, Extent::queries},
            {"bk", &BlockRank1Tiled::block_k, Extent::keys},
            {"ov", &BlockRank1Tiled::columns, Extent::head_dim_v}};
  }
  std::int64_t block_q, block_k, columns;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    const TileList list(head.rule, head.Q.rows(), head.K.rows(), block_q, block_k, Stay::queries);
    const auto S = machine.workspace(std::min(block_q, head.Q.rows()), list.columns(), "S");
    machine.parallel_tiles(list.blocks(), block_q, [&](auto& block, io::Range queries) {
      store_listed_scores(block, head, list, queries, S, Rank1Product{block_q, block_k});
    });
    machine.parallel_tiles(list.blocks(), block_q, [&](auto& block, io::Range queries) {
      weigh_listed_values(
          block, head, list, queries, columns,
          [&](auto& O, auto& sums, const auto& LSE, const TileList::Entry& entry, io::Range group) {
            const auto scores = tile_of(S, entry);
            block.for_tiles(all_rows(head.K.block(entry.keys)), 1, [&](io::Range key) {
              auto P = block.scratch(queries.count(), 1, "P");
              block.load_into(P, scores.block(all_rows(scores), key));
              block.compute(Probabilities{}, P, LSE);
              block.compute(AddRowSums{}, sums, P);
              const auto V = block.stream(head.V.block(entry.keys).block(key, group), "V");
              block.compute(Product{}, O, P, V);
            });
          });
    });
  }

  io::Traffic cost(const ForwardHead& head) const;
};

}  // namespace attest::schedules
