#pragma once

#include "io/machine/machine.hpp"
#include "io/machine/words.hpp"
#include "sparse/inputs/operations.hpp"
#include "sparse/inputs/words/attention_words.hpp"
#include "sparse/inputs/words/slow_csr.hpp"

namespace attest::sparse {

/// Sparse query blocks stay with their dense sums, sparse key blocks pass by: the order of
/// FlashAttention-2 over the identity. With nnz entries this moves nnz^2 / M words, the form for
/// large M.
///
/// Cost:   with T = ceil(q/block_q), T_k = ceil(k/block_k)
///         reads = 2q + T + 2 nnz(Q) + T (2k + 2 T_k + 2 nnz(K) + 2 nnz(V)), writes = q (dv + 1),
///         peak = max over blocks of i (dv + j + 4) + 1 + 2 nnz(Q_i) + dv + max(words K_j, V_j)
///         [sparse/inputs/schedules/schedules_test "closed forms"]
/// Source: Dao 2023, Algorithm 1 (differs: sparse operands, weights beyond the background).
struct SparseFlash {
  std::int64_t block_q, block_k;

  template <io::Machine M>
  void run(M& machine, const SlowAttention& in) const {
    const std::int64_t queries = in.Q.rows(), keys = in.K.rows(), width = in.V.columns();
    machine.parallel_tiles(blocks_of(queries, block_q), block_q, [&](auto& block, io::Range rows) {
      const CsrTiles Q(block, in.Q, rows, "Q");
      const auto full = block.load(in.full.block(rows), "full");
      auto O = block.scratch(rows.count(), width, "O");
      auto m = block.scratch(rows.count(), 1, "m");
      auto l = block.scratch(rows.count(), 1, "l");
      auto sum_V = block.scratch(1, width, "sum V");
      block.compute(FillWith{0}, O);
      block.compute(FillWith{0}, l);
      block.compute(FillWith{0}, sum_V);
      block.compute(StartShifts{}, m, full);
      for (const io::Range& columns : blocks_of(keys, block_k)) {
        auto S = block.scratch(rows.count(), columns.count(), "S");
        {
          const CsrTiles K(block, in.K, columns, "K");
          block.compute(SupportScores{in.scale}, S, Q.offsets, Q.indices, Q.values, K.offsets,
                        K.indices, K.values);
        }
        const CsrTiles V(block, in.V, columns, "V");
        block.compute(AddSupport{}, O, m, l, sum_V, S, full, V.offsets, V.indices, V.values);
      }
      block.compute(FinishSupport{static_cast<float>(keys)}, O, m, l, sum_V, full);
      block.store(O, in.O.block(rows));
      block.store(m, in.LSE.block(rows));
    });
  }

  io::Traffic cost(const SparseOperands& operands) const;
};

}  // namespace attest::sparse
