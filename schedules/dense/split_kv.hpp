#pragma once

#include "schedules/dense/flash2.hpp"

namespace attest::schedules {

/// flash2 on each of several parts of the keys, in parallel, then a merge through LSE, row by row.
/// Parts are whole key blocks; a part that a block of queries does not see costs nothing.
///
/// Cost:   with na the queries of seen (query block, part) pairs, nz_k the keys of visited tiles,
///         reads = na dk + nz_k (dk + dv) + na (dv + 1), writes = na (dv + 1) + q (dv + 1): without
///         a mask na = parts q; peak = max(flash2's, 2 dv + 4)  [schedules/forward_test]
/// Source: Dao, Haziza, Massa, Sizov 2023 (flash-decoding).
struct SplitKv {
  using Head = ForwardHead;
  static constexpr const char* kName = "split_kv";
  static constexpr const char* kSource = "Dao, Haziza, Massa and Sizov 2023 (flash-decoding)";
  static constexpr const char* kSummary =
      "flash-decoding: flash2 on parts of the keys, merged through LSE";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static std::vector<Parameter<SplitKv>> parameters() {
    return {{"splits", &SplitKv::splits, Extent::keys},
            {"bq", &SplitKv::block_q, Extent::queries},
            {"bk", &SplitKv::block_k, Extent::keys}};
  }
  std::int64_t splits, block_q, block_k;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows(), parts = parts_of(k);
    const TileMap map(head.rule, q, k, block_q, block_k, Stay::queries);
    const auto O_parts = machine.workspace(parts * q, head.V.columns(), "O_of_part");
    const auto LSE_parts = machine.workspace(parts * q, 1, "LSE_of_part");
    const auto rows_of = [q](std::int64_t part, io::Range queries) {
      return io::Range{part * q + queries.begin, part * q + queries.end};
    };
    for (std::int64_t part = 0; part < parts; ++part) {
      machine.parallel_tiles(map.blocks(), block_q, [&](auto& block, io::Range queries) {
        const MappedTiles tiles(block, Stay::queries, queries, runs_in(map, queries, part, k),
                                block_k);
        if (tiles.empty()) return;
        const io::Range rows = rows_of(part, queries);
        Flash2::attend(block, head, queries, tiles, O_parts.block(rows), LSE_parts.block(rows));
      });
    }
    machine.for_tiles(map.blocks(), block_q, [&](io::Range queries) {
      machine.parallel_tiles(queries, 1, [&](auto& block, io::Range row) {
        if (map.runs(queries).empty()) {
          return store_empty_rows(block, head.O.block(row), head.LSE.block(row), head.V.columns());
        }
        auto O = block.scratch(1, head.V.columns(), "O");
        auto m = block.scratch(1, 1, "m");
        auto l = block.scratch(1, 1, "l");
        block.compute(Fill{0}, O);
        block.compute(StartRows{}, m, l);
        for (std::int64_t part = 0; part < parts; ++part) {
          if (runs_in(map, queries, part, k).empty()) continue;
          const auto O_part = block.load(O_parts.block(rows_of(part, row)), "O_of_part");
          const auto LSE_part = block.load(LSE_parts.block(rows_of(part, row)), "LSE_of_part");
          auto word = block.scratch(1, 1, "weight");
          block.compute(MergeSplit{}, O, m, l, O_part, LSE_part, word);
        }
        block.compute(FinishRows{}, O, m, l);
        block.store(O, head.O.block(row));
        block.store(m, head.LSE.block(row));
      });
    });
  }

  io::Traffic cost(const ForwardHead& head) const;

 private:
  // Keys of a part: whole blocks, as equal as they can be.
  std::int64_t part_keys(std::int64_t k) const {
    return io::tiles(io::tiles(k, block_k), splits) * block_k;
  }
  std::int64_t parts_of(std::int64_t k) const { return k == 0 ? 0 : io::tiles(k, part_keys(k)); }
  std::vector<TileRun> runs_in(const TileMap& map, io::Range queries, std::int64_t part,
                               std::int64_t k) const;
  // In how many parts a block of queries sees keys.
  std::int64_t parts_seen(const TileMap& map, io::Range queries, std::int64_t k) const;
};

}  // namespace attest::schedules
