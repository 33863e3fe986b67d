#pragma once

#include "io/machine/machine.hpp"
#include "io/machine/words.hpp"
#include "sparse/inputs/gradient_operations.hpp"
#include "sparse/inputs/words/gradient_words.hpp"
#include "sparse/inputs/words/slow_csr.hpp"

namespace attest::sparse {

/// The backward pass of SparseFlash in two passes, neither of which writes anything twice: query
/// blocks stay with dQ and sparse keys pass by, then key blocks stay with dK and dV and sparse
/// queries pass by. Before each, the dense sums that all rows share are formed in blocks of rows:
/// X = V^T K and sum_j K_j; A = sum_i w_i dO_i^T Q_i, b = sum_i w_i D_i Q_i and sum_i w_i dO_i.
/// With nnz entries the support takes nnz^2 / M words, the form for large M.
///
/// Cost:   with c = ceil(q/block_q), c' = ceil(k/block_k), p = ceil(q/pass_q),
///         p' = ceil(k/pass_k), e = ceil(dv/block_v), K^ = 2k + 2 nnz(K) + 2 nnz(V),
///         Q^ = q + 2 nnz(Q)
///         reads = (e + c)(K^ + 2c') + K^ + 2p' + Q^ + c + (e + p')(Q^ + p)
///                 + (c + p')(dv dk + dk) + p' dv + q (3 dv + 3 + 2e + p'(dv + 3)),
///         writes = 2 (dv dk + dk) + dv + q (dk + 1) + k (dk + dv),
///         peak = max over blocks, v the rows of the largest block of X, of
///                v dk + dk + words of K_j and V_j,
///                words of Q_i + i (dv + dk + 3) + max(v dk, i j + words of K_j and V_j),
///                v dk + v + dk + words of Q_i + i (v + 3),
///                words of K_j and V_j + j (dk + dv) + max(v dk, dv, i j + words of Q_i + i (dv +
///                3))
///         [sparse/inputs/schedules/gradient_schedules_test "closed forms"]
/// Source: Dao 2023, Algorithm 2, split as two_pass is (differs: sparse operands, weights beyond
///         the background). docs/theory/sparse-inputs.md
struct SparseFlashBackward {
  std::int64_t block_q, block_k;  // queries stay, keys pass
  std::int64_t pass_q, pass_k;    // queries pass, keys stay
  std::int64_t block_v;           // rows of X and A at a time

  template <io::Machine M>
  void run(M& machine, const SlowGradients& in) const {
    const Shared over_keys(machine, in, "X", "sum K"), over_queries(machine, in, "A", "b");
    const auto D = machine.workspace(in.Q.rows(), 1, "D");
    const auto sum_dO = machine.workspace(1, in.V.columns(), "sum w dO");
    sum_over_keys(machine, in, over_keys);
    query_pass(machine, in, over_keys, D);
    sum_over_queries(machine, in, over_queries, D, sum_dO);
    key_pass(machine, in, over_queries, D, sum_dO);
  }

  io::Traffic cost(const SparseOperands& operands) const;

 private:
  // Words that rows of one kind share: a matrix (dv, dk) and a row (1, dk).
  struct Shared {
    template <class M>
    Shared(M& machine, const SlowGradients& in, const char* of_matrix, const char* of_row)
        : matrix(machine.workspace(in.V.columns(), in.K.columns(), of_matrix)),
          row(machine.workspace(1, in.K.columns(), of_row)) {}

    io::MutableSlowMatrix matrix, row;
  };

  template <class M>
  void sum_over_keys(M& machine, const SlowGradients& in, const Shared& sums) const {
    const std::vector<io::Range> keys = blocks_of(in.K.rows(), block_k);
    machine.parallel_tiles(
        blocks_of(in.V.columns(), block_v), block_v, [&](auto& block, io::Range group) {
          const std::int64_t with_row = group.begin == 0 ? 1 : 0;
          auto X = block.scratch(group.count(), in.K.columns(), "X");
          auto sum_K = block.scratch(with_row, in.K.columns(), "sum K");
          block.compute(FillWith{0}, X);
          block.compute(FillWith{0}, sum_K);
          for (const io::Range& rows : keys) {
            const CsrTiles K(block, in.K, rows, "K"), V(block, in.V, rows, "V");
            block.compute(AddInnerSums{group.begin}, X, V.offsets, V.indices, V.values, K.offsets,
                          K.indices, K.values);
            if (with_row == 1) {
              block.compute(AddSparseRows{}, sum_K, K.offsets, K.indices, K.values);
            }
          }
          block.store(X, sums.matrix.block(group));
          block.store(sum_K, sums.row.block({0, with_row}));
        });
  }

  template <class M>
  void query_pass(M& machine, const SlowGradients& in, const Shared& sums,
                  const io::MutableSlowMatrix& D_slow) const {
    const std::vector<io::Range> keys = blocks_of(in.K.rows(), block_k);
    machine.parallel_tiles(
        blocks_of(in.Q.rows(), block_q), block_q, [&](auto& block, io::Range rows) {
          const CsrTiles Q(block, in.Q, rows, "Q");
          const auto full = block.load(in.full.block(rows), "full");
          const auto LSE = block.load(in.LSE.block(rows), "LSE");
          const auto dO = block.load(in.dO.block(rows), "dO");
          auto D = block.scratch(rows.count(), 1, "D");
          block.compute(FillWith{0}, D);
          {
            const auto O = block.stream(in.O.block(rows), "O");
            block.compute(AddDeltas{}, D, dO, O);
          }
          block.store(D, D_slow.block(rows));
          auto dQ = block.scratch(rows.count(), in.Q.columns(), "dQ");
          block.compute(FillWith{0}, dQ);
          for (const io::Range& group : blocks_of(in.V.columns(), block_v)) {
            const auto X = block.load(sums.matrix.block(group), "X");
            block.compute(AddDenseProduct{group.begin}, dQ, dO, X);
          }
          {
            const auto sum_K = block.load(sums.row, "sum K");
            block.compute(WeighCommon{}, dQ, sum_K, D, LSE, full);
          }
          for (const io::Range& columns : keys) {
            auto S = block.scratch(rows.count(), columns.count(), "S");
            const CsrTiles K(block, in.K, columns, "K"), V(block, in.V, columns, "V");
            block.compute(SupportScores{in.scale}, S, Q.offsets, Q.indices, Q.values, K.offsets,
                          K.indices, K.values);
            block.compute(WeighSupport{}, S, LSE, full);
            block.compute(SupportGradients{}, S, dO, D, V.offsets, V.indices, V.values);
            block.compute(AddSupportRows{}, dQ, S, K.offsets, K.indices, K.values);
          }
          block.compute(Multiply{in.scale}, dQ);
          block.store(dQ, in.dQ.block(rows));
        });
  }

  template <class M>
  void sum_over_queries(M& machine, const SlowGradients& in, const Shared& sums,
                        const io::SlowMatrix& D_slow, const io::MutableSlowMatrix& sum_dO) const {
    const std::vector<io::Range> queries = blocks_of(in.Q.rows(), pass_q);
    machine.parallel_tiles(
        blocks_of(in.V.columns(), block_v), block_v, [&](auto& block, io::Range group) {
          const std::int64_t with_row = group.begin == 0 ? 1 : 0;
          auto A = block.scratch(group.count(), in.Q.columns(), "A");
          auto sum = block.scratch(1, group.count(), "sum w dO");
          auto b = block.scratch(with_row, in.Q.columns(), "b");
          block.compute(FillWith{0}, A);
          block.compute(FillWith{0}, sum);
          block.compute(FillWith{0}, b);
          for (const io::Range& rows : queries) {
            const CsrTiles Q(block, in.Q, rows, "Q");
            const auto full = block.load(in.full.block(rows), "full");
            const auto LSE = block.load(in.LSE.block(rows), "LSE");
            const auto dO = block.load(in.dO.block(rows, group), "dO");
            block.compute(AddWeightedSums{}, A, sum, dO, LSE, full, Q.offsets, Q.indices, Q.values);
            if (with_row == 1) {
              const auto D = block.load(D_slow.block(rows), "D");
              block.compute(AddWeightedRows{}, b, D, LSE, full, Q.offsets, Q.indices, Q.values);
            }
          }
          block.store(A, sums.matrix.block(group));
          block.store(sum, sum_dO.block({0, 1}, group));
          block.store(b, sums.row.block({0, with_row}));
        });
  }

  template <class M>
  void key_pass(M& machine, const SlowGradients& in, const Shared& sums,
                const io::SlowMatrix& D_slow, const io::SlowMatrix& sum_dO) const {
    const std::vector<io::Range> queries = blocks_of(in.Q.rows(), pass_q);
    machine.parallel_tiles(
        blocks_of(in.K.rows(), pass_k), pass_k, [&](auto& block, io::Range keys) {
          const CsrTiles K(block, in.K, keys, "K"), V(block, in.V, keys, "V");
          auto dK = block.scratch(keys.count(), in.K.columns(), "dK");
          auto dV = block.scratch(keys.count(), in.V.columns(), "dV");
          block.compute(FillWith{0}, dK);
          block.compute(FillWith{0}, dV);
          for (const io::Range& group : blocks_of(in.V.columns(), block_v)) {
            const auto A = block.load(sums.matrix.block(group), "A");
            block.compute(AddSparseProduct{group.begin}, dK, A, V.offsets, V.indices, V.values);
          }
          {
            const auto b = block.load(sums.row, "b");
            block.compute(AddToRows{-1}, dK, b);
          }
          {
            const auto sum = block.load(sum_dO, "sum w dO");
            block.compute(AddToRows{1}, dV, sum);
          }
          for (const io::Range& rows : queries) {
            auto S = block.scratch(rows.count(), keys.count(), "S");
            const CsrTiles Q(block, in.Q, rows, "Q");
            const auto full = block.load(in.full.block(rows), "full");
            const auto LSE = block.load(in.LSE.block(rows), "LSE");
            const auto D = block.load(D_slow.block(rows), "D");
            const auto dO = block.load(in.dO.block(rows), "dO");
            block.compute(SupportScores{in.scale}, S, Q.offsets, Q.indices, Q.values, K.offsets,
                          K.indices, K.values);
            block.compute(WeighSupport{}, S, LSE, full);
            block.compute(AddSupportColumns{}, dV, S, dO);
            block.compute(SupportGradients{}, S, dO, D, V.offsets, V.indices, V.values);
            block.compute(AddSparseColumns{}, dK, S, Q.offsets, Q.indices, Q.values);
          }
          block.compute(Multiply{in.scale}, dK);
          block.store(dK, in.dK.block(keys));
          block.store(dV, in.dV.block(keys));
        });
  }
};

}  // namespace attest::sparse
