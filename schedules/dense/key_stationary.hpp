#pragma once

#include "schedules/engine/backward_step.hpp"

namespace attest::cpu {

/// K, V, dK, dV of a key block stay, query blocks pass by; dQ is made on the first tile a query
/// block meets, read and written on the later ones.
///
/// Cost:   reads = 2 q dv + kc (dk + dv) + nz_q (dk + dv + 2) + (nz_q - ra) dk,
///         writes = q + k (dk + dv) + nz_q dk + (q - ra) dk with kc the keys and ra the queries of
///         blocks that meet any, nz_q the queries of visited tiles: without a mask kc = k, ra = q,
///         nz_q = ceil(k/block_k) q;
///         peak = 2 j (dk + dv) + i (2 dk + dv + 2) + 2 i j  [schedules/backward_test]
/// Source: Dao 2023, Algorithm 2, trimmed: the paper also fills dQ with zeros and lists O in the
///         inner loop. D by rows, word by word.
struct KeyStationary {
  using Head = BackwardHead;
  static constexpr const char* kName = "key_stationary";
  static constexpr const char* kSummary =
      "FlashAttention-2's backward: key blocks stay with dK and dV, dQ is read and written";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .movement = io::RowMovement::whole_index,
                                          .saved = io::SavedOutputs::read};
  static std::vector<Parameter<KeyStationary>> parameters() {
    return {{"bq", &KeyStationary::block_q, Extent::queries},
            {"bk", &KeyStationary::block_k, Extent::keys},
            dlse_parameter(&KeyStationary::dlse)};
  }
  std::int64_t block_q, block_k, dlse = kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const TileMap map(head.rule, head.Q.rows(), head.K.rows(), block_q, block_k);
    const auto D = machine.workspace(head.Q.rows(), 1, "D");
    store_deltas(machine, head, dlse, D);
    machine.for_tiles(map.key_groups(), block_k, [&](io::Range keys) {
      auto dK = machine.scratch(keys.count(), head.K.columns(), "dK");
      auto dV = machine.scratch(keys.count(), head.V.columns(), "dV");
      begin_sums(machine, head, keys, dK, dV);
      const std::vector<TileMap::Run> runs = map.query_runs(keys);
      if (!runs.empty()) add_block(machine, head, D, keys, runs, dK, dV);
      machine.store(dK, head.dK.block(keys));
      machine.store(dV, head.dV.block(keys));
    });
    for (const io::Range& idle : map.idle_queries()) {
      store_zeros(machine, head.dQ, idle, block_q);
    }
  }

  io::Traffic cost(const BackwardHead& head) const;

 private:
  template <class M, class Tile>
  void add_block(M& machine, const BackwardHead& head, const io::SlowMatrix& D_slow, io::Range keys,
                 const std::vector<TileMap::Run>& runs, Tile& dK, Tile& dV) const {
    const auto K = machine.load(head.K.block(keys), "K");
    const auto V = machine.load(head.V.block(keys), "V");
    for (const TileMap::Run& run : runs) {
      machine.for_tiles(run.rows, block_q, [&](io::Range queries) {
        const auto Q = machine.load(head.Q.block(queries), "Q");
        const auto dO = machine.load(head.dO.block(queries), "dO");
        const auto LSE = machine.load(head.LSE.block(queries), "LSE");
        const auto D = machine.load(D_slow.block(queries), "D");
        auto dQ = machine.scratch(queries.count(), head.Q.columns(), "dQ");
        if (run.visit == TileMap::Visit::first) {
          machine.compute(Fill{0}, dQ);
        } else {
          machine.load_into(dQ, head.dQ.block(queries));
        }
        auto P = machine.scratch(queries.count(), keys.count(), "P");
        auto dS = machine.scratch(queries.count(), keys.count(), "dS");
        compute_gradients(machine, P, dS, Q, K, V, dO, LSE, D, head.rule, queries, keys);
        machine.compute(Product{Form::first_transposed}, dV, P, dO);
        machine.compute(Product{Form::first_transposed}, dK, dS, Q);
        machine.compute(Product{}, dQ, dS, K);
        machine.store(dQ, head.dQ.block(queries));
      });
    }
  }
};

/// The backward of flash1: dQ, dK and dV begin as zeros in slow memory, D is made again for every
/// tile, P comes from m and l.
///
/// Cost:   reads = kc (dk + dv) + nz_q (2 dk + 2 dv + 2), writes = q dk + k (dk + dv) + nz_q dk +
///         kc (dk + dv); peak = 2 j (dk + dv) + i (2 dk + dv + 3) + max(i dv, 2 i j)
///         [schedules/backward_test]
///         A head that continues sums reads k (dk + dv) more and stores no zeros of dK and dV.
/// Source: Dao et al. 2022, Algorithm 4.
struct Flash1Backward {
  using Head = BackwardHead;
  static constexpr const char* kName = "flash1_bwd";
  static constexpr const char* kSummary =
      "the backward of flash1: key blocks stay, dQ is read and written for every tile";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .saved = io::SavedOutputs::read};
  static constexpr bool kReadsSaved = true;
  static std::vector<Parameter<Flash1Backward>> parameters() {
    return {{"bq", &Flash1Backward::block_q, Extent::queries},
            {"bk", &Flash1Backward::block_k, Extent::keys},
            dlse_parameter(&Flash1Backward::dlse)};
  }
  std::int64_t block_q, block_k, dlse = kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const TileMap map(head.rule, head.Q.rows(), head.K.rows(), block_q, block_k);
    store_zeros(machine, head.dQ, all_rows(head.dQ), block_q);
    if (head.sums == Sums::fresh) {
      store_zeros(machine, head.dK, all_rows(head.dK), block_k);
      store_zeros(machine, head.dV, all_rows(head.dV), block_k);
    }
    machine.for_tiles(map.key_groups(), block_k, [&](io::Range keys) {
      const std::vector<TileMap::Run> runs = map.query_runs(keys);
      // Keys that no query sees have their zeros, or pass on what the heads before left.
      if (runs.empty() && head.sums == Sums::fresh) return;
      auto dK = machine.scratch(keys.count(), head.K.columns(), "dK");
      auto dV = machine.scratch(keys.count(), head.V.columns(), "dV");
      begin_sums(machine, head, keys, dK, dV);
      if (!runs.empty()) add_block(machine, head, keys, runs, dK, dV);
      machine.store(dK, head.dK.block(keys));
      machine.store(dV, head.dV.block(keys));
    });
  }

  io::Traffic cost(const BackwardHead& head) const;

 private:
  template <class M, class Tile>
  void add_block(M& machine, const BackwardHead& head, io::Range keys,
                 const std::vector<TileMap::Run>& runs, Tile& dK, Tile& dV) const {
    const auto K = machine.load(head.K.block(keys), "K");
    const auto V = machine.load(head.V.block(keys), "V");
    for (const TileMap::Run& run : runs) {
      machine.for_tiles(run.rows, block_q, [&](io::Range queries) {
        add_tile(machine, head, queries, keys, K, V, dK, dV);
      });
    }
  }

  template <class M, class Loaded, class Tile>
  void add_tile(M& machine, const BackwardHead& head, io::Range queries, io::Range keys,
                const Loaded& K, const Loaded& V, Tile& dK, Tile& dV) const {
    const auto Q = machine.load(head.Q.block(queries), "Q");
    const auto dO = machine.load(head.dO.block(queries), "dO");
    const auto m = machine.load(head.m.block(queries), "m");
    const auto l = machine.load(head.l.block(queries), "l");
    auto dQ = machine.scratch(queries.count(), head.Q.columns(), "dQ");
    machine.load_into(dQ, head.dQ.block(queries));
    auto D = machine.scratch(queries.count(), 1, "D");
    machine.compute(Fill{0}, D);
    {
      const auto O = machine.load(head.O.block(queries), "O");
      machine.compute(AddRowDots{}, D, dO, O);
    }
    subtract_dlse(machine, head, dlse, queries, D);
    auto P = machine.scratch(queries.count(), keys.count(), "P");
    auto dS = machine.scratch(queries.count(), keys.count(), "dS");
    compute_gradients_of(machine, P, dS, Q, K, V, dO, m, l, D, head.rule, queries, keys);
    machine.compute(Product{Form::first_transposed}, dV, P, dO);
    machine.compute(Product{Form::first_transposed}, dK, dS, Q);
    machine.compute(Product{}, dQ, dS, K);
    machine.store(dQ, head.dQ.block(queries));
  }
};

}  // namespace attest::cpu
