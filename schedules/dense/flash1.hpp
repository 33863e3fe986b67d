#pragma once

#include <array>
#include <string>

#include "schedules/engine/parameter.hpp"
#include "schedules/engine/score_step.hpp"
#include "schedules/walks/lists/tile_list.hpp"
#include "schedules/walks/tile_map.hpp"

namespace attest::schedules {

/// Key blocks stay, query blocks pass by with O, m and l, which are read and written for every
/// tile. Rules for the tiles, without lists: `paper`, bk = ceil(M/4d) and bq = min(bk, d), which
/// can need more than M words; `fit`, bk = floor((M - 1)/(5d + 2)) and bq = min(bk, d), which never
/// does.
///
/// Cost:   reads = kc (dk + dv) + nz_q (dk + dv + 2) + L, writes = (q + nz_q)(dv + 2) with kc the
///         keys of blocks that are seen, nz_q the queries of visited tiles and L the index words of
///         the walk: without a mask k (dk + dv) + T q (dk + dv + 2) and (T + 1) q (dv + 2),
///         T = ceil(k/block_k);
///         peak = max(j (dk + dv) + i (dk + dv + 2) + i j + 1 + r) over the tiles, a word for a
///         row's new maximum and r those of a record and the two of an open list; i dv while O is
///         filled with zeros
///         [schedules/forward_test], [schedules/lists/blocks/block_test "closed forms"]
/// Source: Dao et al. 2022, Algorithm 1; over lists Algorithm 5 (differs: reads lists of what is
///         there, where the paper asks of every tile whether it is). LSE is not an output.
template <Walk W>
struct Flash1Over {
  using Head = ForwardHead;
  static constexpr const char* kDense = "flash1";
  static constexpr const char* kName = W::kLists ? "block_flash1" : kDense;
  static constexpr const char* kSource =
      W::kLists ? "Dao et al. 2022, Algorithm 5" : "Dao et al. 2022, Algorithm 1";
  static constexpr const char* kSummary =
      W::kLists ? "block-sparse FlashAttention: listed key blocks stay, O, m and l pass; index "
                  "words count"
                : "FlashAttention: key blocks stay, O, m and l are read and written for every tile";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once};
  static constexpr std::array<const char*, 2> kRules{"paper", "fit"};
  static std::vector<Parameter<Flash1Over>> parameters() {
    return {{"bq", &Flash1Over::block_q, Extent::queries},
            {"bk", &Flash1Over::block_k, Extent::keys}};
  }
  std::int64_t block_q, block_k;

  /// Sets the tiles by a rule. Throws InvalidProblem for an unknown rule, for tiles given besides
  /// it, and without a capacity.
  static void choose(Flash1Over& schedule, const std::string& rule, const attest_problem& problem,
                     io::FastMemory capacity) requires(!W::kLists);

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    const std::int64_t q = head.Q.rows();
    const auto m_slow = machine.workspace(q, 1, "m"), l_slow = machine.workspace(q, 1, "l");
    machine.parallel_tiles(io::Range{0, q}, block_q, [&](auto& block, io::Range queries) {
      store_empty_rows(block, head.O.block(queries), m_slow.block(queries), head.V.columns());
      auto l = block.scratch(queries.count(), 1, "l");
      block.compute(Fill{0}, l);
      block.store(l, l_slow.block(queries));
    });
    const W walk(head.rule, q, head.K.rows(), block_q, block_k, Stay::keys);
    machine.for_tiles(walk.blocks(), block_k, [&](io::Range keys) {
      const auto tiles = walk.open(machine, keys);
      if (tiles.empty()) return;
      const auto K = machine.load(head.K.block(keys), "K");
      const auto V = machine.load(head.V.block(keys), "V");
      tiles.for_each([&](const PassingTile& tile) {
        const io::Range queries = tile.queries;
        const auto Q = machine.load(head.Q.block(queries), "Q");
        auto O = machine.scratch(queries.count(), head.V.columns(), "O");
        auto m = machine.scratch(queries.count(), 1, "m");
        auto l = machine.scratch(queries.count(), 1, "l");
        machine.load_into(O, head.O.block(queries));
        machine.load_into(m, m_slow.block(queries));
        machine.load_into(l, l_slow.block(queries));
        auto S = machine.scratch(queries.count(), keys.count(), "S");
        compute_scores(machine, S, Q, K, head.rule, queries, keys);
        {
          auto word = machine.scratch(1, 1, "row maximum");
          machine.compute(UpdateNormalized{}, S, m, l, O, word);
        }
        machine.compute(Product{}, O, S, V);
        machine.store(O, head.O.block(queries));
        machine.store(m, m_slow.block(queries));
        machine.store(l, l_slow.block(queries));
      });
    });
  }

  io::Traffic cost(const ForwardHead& head) const;
};

using Flash1 = Flash1Over<TileMap>;

using BlockFlash1 = Flash1Over<TileList>;

}  // namespace attest::schedules
