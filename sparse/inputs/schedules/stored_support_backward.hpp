#pragma once

#include <span>
#include <vector>

#include "sparse/inputs/attention.hpp"
#include "sparse/inputs/gradient_operations.hpp"
#include "sparse/inputs/schedules/sparse_products.hpp"
#include "sparse/inputs/words/gradient_words.hpp"

namespace attest::sparse {

/// Q and K compressed by columns for the scores, whose blocks hold G in the end; all operands by
/// blocks of rows and columns, [columns][rows]; the dense matrices.
struct SlowSupportGradients {
  SlowProduct scores;
  std::vector<std::vector<SlowCsr>> Q, K, V;
  io::SlowMatrix full;  // (q, 1): 1 for a row whose support is every key, else 0
  io::SlowMatrix O, LSE, dO;
  io::MutableSlowMatrix dQ, dK, dV;
  float scale = 1;
};

struct StoredSupportBackward;

/// Owns the operands, cut as the schedule needs them, what a forward pass stored, dO, and the
/// results.
class SupportGradientStore {
 public:
  /// Requires: valid operands, sizes that match them. Else throws InvalidProblem.
  SupportGradientStore(const SparseOperands& operands, std::span<const float> dO, Outputs stored,
                       const StoredSupportBackward& schedule);

  SlowSupportGradients slow();
  const Gradients& gradients() const { return dense_.gradients(); }

 private:
  GradientStore dense_;
  ProductStore scores_;
  CsrGrid Q_, K_, V_;
};

/// The backward pass of StoredSupport: scores of the support by an OuterProduct, of which G and H
/// go to slow memory; what all rows share (X = V^T K, A = sum_i w_i dO_i^T Q_i and their rows),
/// then dQ, dK and dV in dense tiles. With nnz entries and Z pairs the support takes
/// nnz sqrt(Z / M) words, the form for small M.
///
/// Cost:   with c, c', e, e' blocks of queries, keys, columns of V and of Q,
///         K^ = e' (k + c') + 2 nnz(K), V^ = e (k + c') + 2 nnz(V), Q^ = e' (q + c) + 2 nnz(Q),
///         S^ = c' q + c c' + 2 Z
///         reads = OuterProduct's + 3q + 2q dv + c' q dv + c V^                  G, H
///                 + e' V^ + e K^ + e Q^ + 2 e e' q + e' q (dv + 1)              X, A
///                 + e' (q (dv + 3) + S^) + c (dv d + d + K^)                    dQ
///                 + c' (dv d + d + Q^) + e' (V^ + S^)                           dK
///                 + e S^ + c' (dv + q dv)                                       dV
///         writes = q + 2 Z + 2 (dv d + d) + dv + q d + k (d + dv), peak in the source
///         [sparse/inputs/schedules/gradient_schedules_test "closed forms"]
/// Source: Li et al. 2024, the small-cache case of theorem 4.5 (differs: dense softmax).
struct StoredSupportBackward {
  std::int64_t block_q, block_k, block_v, block_d;

  template <io::Machine M>
  void run(M& machine, const SlowSupportGradients& in) const {
    const Ranges ranges(*this, in);
    const Kept kept(machine, in);
    store_deltas(machine, in, ranges, kept);
    store_support(machine, in, ranges, kept);
    for (std::size_t g = 0; g < ranges.v.size(); ++g) {
      for (std::size_t h = 0; h < ranges.d.size(); ++h) {
        sum_over_keys(machine, in, ranges, kept, {g, h});
        sum_over_queries(machine, in, ranges, kept, {g, h});
      }
    }
    for (std::size_t h = 0; h < ranges.d.size(); ++h) {
      for (std::size_t i = 0; i < ranges.q.size(); ++i) store_dQ(machine, in, ranges, kept, i, h);
      for (std::size_t j = 0; j < ranges.k.size(); ++j) store_dK(machine, in, ranges, kept, j, h);
    }
    for (std::size_t g = 0; g < ranges.v.size(); ++g) {
      for (std::size_t j = 0; j < ranges.k.size(); ++j) store_dV(machine, in, ranges, kept, j, g);
    }
  }

  OuterProduct scores() const { return {block_q, block_k}; }

  io::Traffic cost(const SparseOperands& operands) const;
  io::Traffic cost(const SparseOperands& operands, const EntrySums& support) const;

 private:
  struct Ranges {
    Ranges(const StoredSupportBackward& s, const SlowSupportGradients& in)
        : q(blocks_of(in.dQ.rows(), s.block_q)),
          k(blocks_of(in.dK.rows(), s.block_k)),
          v(blocks_of(in.dV.columns(), s.block_v)),
          d(blocks_of(in.dK.columns(), s.block_d)) {}

    std::vector<io::Range> q, k, v, d;
  };

  // Workspaces: D, H on the support, and what rows share.
  struct Kept {
    template <class M>
    Kept(M& machine, const SlowSupportGradients& in)
        : H(in.scores.C),
          D(machine.workspace(in.dQ.rows(), 1, "D")),
          X(machine.workspace(in.dV.columns(), in.dK.columns(), "X")),
          A(machine.workspace(in.dV.columns(), in.dK.columns(), "A")),
          sum_K(machine.workspace(1, in.dK.columns(), "sum K")),
          b(machine.workspace(1, in.dK.columns(), "b")),
          sum_dO(machine.workspace(1, in.dV.columns(), "sum w dO")) {
      for (auto& row : H) {
        for (SlowCsr& block : row) block.values = machine.workspace(block.values.rows(), 1, "H");
      }
    }

    std::vector<std::vector<SlowCsr>> H;
    io::MutableSlowMatrix D, X, A, sum_K, b, sum_dO;
  };

  struct Columns {
    std::size_t v, d;
  };

  template <class M>
  static CsrTiles<M> whole(M& machine, const SlowCsr& block, const char* name) {
    return CsrTiles<M>(machine, block, {0, block.rows()}, name);
  }

  template <class M>
  void store_deltas(M& machine, const SlowSupportGradients& in, const Ranges& ranges,
                    const Kept& kept) const {
    for (const io::Range& rows : ranges.q) {
      auto D = machine.scratch(rows.count(), 1, "D");
      machine.compute(FillWith{0}, D);
      for (const io::Range& columns : ranges.v) {
        const auto dO = machine.load(in.dO.block(rows, columns), "dO");
        const auto O = machine.stream(in.O.block(rows, columns), "O");
        machine.compute(AddDeltas{}, D, dO, O);
      }
      machine.store(D, kept.D.block(rows));
    }
  }

  // G and H of all blocks.
  template <class M>
  void store_support(M& machine, const SlowSupportGradients& in, const Ranges& ranges,
                     const Kept& kept) const {
    for (std::size_t i = 0; i < ranges.q.size(); ++i) {
      const auto full = machine.load(in.full.block(ranges.q[i]), "full");
      const auto LSE = machine.load(in.LSE.block(ranges.q[i]), "LSE");
      const auto D = machine.load(kept.D.block(ranges.q[i]), "D");
      for (std::size_t j = 0; j < ranges.k.size(); ++j) {
        scores().run_block(machine, in.scores, i, j, [&](auto& G) {
          machine.compute(Multiply{in.scale}, G.values);
          machine.compute(WeighEntries{}, G.values, G.offsets, LSE, full);
          auto H = machine.scratch(G.values.rows(), 1, "H");
          machine.compute(FillWith{0}, H);
          for (std::size_t g = 0; g < ranges.v.size(); ++g) {
            const auto dO = machine.load(in.dO.block(ranges.q[i], ranges.v[g]), "dO");
            const auto V = whole(machine, in.V[g][j], "V");
            machine.compute(AddEntryProducts{}, H, G.offsets, G.indices, dO, V.offsets, V.indices,
                            V.values);
          }
          machine.compute(EntryGradients{}, H, G.offsets, G.values, D);
          machine.store(H, kept.H[i][j].values);
        });
      }
    }
  }

  // A tile of X, and of the sum of all keys.
  template <class M>
  void sum_over_keys(M& machine, const SlowSupportGradients& in, const Ranges& ranges,
                     const Kept& kept, Columns at) const {
    const io::Range of_v = ranges.v[at.v], of_d = ranges.d[at.d], rows{0, at.v == 0 ? 1 : 0};
    auto X = machine.scratch(of_v.count(), of_d.count(), "X");
    auto sum_K = machine.scratch(rows.count(), of_d.count(), "sum K");
    machine.compute(FillWith{0}, X);
    machine.compute(FillWith{0}, sum_K);
    for (std::size_t j = 0; j < ranges.k.size(); ++j) {
      const auto K = whole(machine, in.K[at.d][j], "K"), V = whole(machine, in.V[at.v][j], "V");
      machine.compute(AddInnerSums{0}, X, V.offsets, V.indices, V.values, K.offsets, K.indices,
                      K.values);
      if (at.v == 0) machine.compute(AddSparseRows{}, sum_K, K.offsets, K.indices, K.values);
    }
    machine.store(X, kept.X.block(of_v, of_d));
    machine.store(sum_K, kept.sum_K.block(rows, of_d));
  }

  // A tile of A, of b and of the sum of w dO.
  template <class M>
  void sum_over_queries(M& machine, const SlowSupportGradients& in, const Ranges& ranges,
                        const Kept& kept, Columns at) const {
    const io::Range of_v = ranges.v[at.v], of_d = ranges.d[at.d];
    const io::Range rows{0, at.v == 0 ? 1 : 0}, sums{0, at.d == 0 ? 1 : 0};
    auto A = machine.scratch(of_v.count(), of_d.count(), "A");
    auto sum = machine.scratch(sums.count(), of_v.count(), "sum w dO");
    auto b = machine.scratch(rows.count(), of_d.count(), "b");
    machine.compute(FillWith{0}, A);
    machine.compute(FillWith{0}, sum);
    machine.compute(FillWith{0}, b);
    for (std::size_t i = 0; i < ranges.q.size(); ++i) {
      const auto Q = whole(machine, in.Q[at.d][i], "Q");
      const auto full = machine.load(in.full.block(ranges.q[i]), "full");
      const auto LSE = machine.load(in.LSE.block(ranges.q[i]), "LSE");
      const auto dO = machine.load(in.dO.block(ranges.q[i], of_v), "dO");
      machine.compute(AddWeightedSums{}, A, sum, dO, LSE, full, Q.offsets, Q.indices, Q.values);
      if (at.v != 0) continue;
      const auto D = machine.load(kept.D.block(ranges.q[i]), "D");
      machine.compute(AddWeightedRows{}, b, D, LSE, full, Q.offsets, Q.indices, Q.values);
    }
    machine.store(A, kept.A.block(of_v, of_d));
    machine.store(sum, kept.sum_dO.block(sums, of_v));
    machine.store(b, kept.b.block(rows, of_d));
  }

  template <class M>
  void store_dQ(M& machine, const SlowSupportGradients& in, const Ranges& ranges, const Kept& kept,
                std::size_t i, std::size_t h) const {
    const io::Range rows = ranges.q[i], of_d = ranges.d[h];
    auto dQ = machine.scratch(rows.count(), of_d.count(), "dQ");
    machine.compute(FillWith{0}, dQ);
    {
      const auto full = machine.load(in.full.block(rows), "full");
      const auto LSE = machine.load(in.LSE.block(rows), "LSE");
      const auto D = machine.load(kept.D.block(rows), "D");
      for (const io::Range& of_v : ranges.v) {
        const auto dO = machine.load(in.dO.block(rows, of_v), "dO");
        const auto X = machine.load(kept.X.block(of_v, of_d), "X");
        machine.compute(AddDenseProduct{0}, dQ, dO, X);
      }
      const auto sum_K = machine.load(kept.sum_K.block({0, 1}, of_d), "sum K");
      machine.compute(WeighCommon{}, dQ, sum_K, D, LSE, full);
    }
    for (std::size_t j = 0; j < ranges.k.size(); ++j) {
      const auto H = whole(machine, kept.H[i][j], "H"), K = whole(machine, in.K[h][j], "K");
      machine.compute(AddEntryRows{}, dQ, H.offsets, H.indices, H.values, K.offsets, K.indices,
                      K.values);
    }
    machine.compute(Multiply{in.scale}, dQ);
    machine.store(dQ, in.dQ.block(rows, of_d));
  }

  template <class M>
  void store_dK(M& machine, const SlowSupportGradients& in, const Ranges& ranges, const Kept& kept,
                std::size_t j, std::size_t h) const {
    const io::Range keys = ranges.k[j], of_d = ranges.d[h];
    auto dK = machine.scratch(keys.count(), of_d.count(), "dK");
    machine.compute(FillWith{0}, dK);
    for (std::size_t g = 0; g < ranges.v.size(); ++g) {
      const auto V = whole(machine, in.V[g][j], "V");
      const auto A = machine.load(kept.A.block(ranges.v[g], of_d), "A");
      machine.compute(AddSparseProduct{0}, dK, A, V.offsets, V.indices, V.values);
    }
    {
      const auto b = machine.load(kept.b.block({0, 1}, of_d), "b");
      machine.compute(AddToRows{-1}, dK, b);
    }
    for (std::size_t i = 0; i < ranges.q.size(); ++i) {
      const auto H = whole(machine, kept.H[i][j], "H"), Q = whole(machine, in.Q[h][i], "Q");
      machine.compute(AddEntryColumns{}, dK, H.offsets, H.indices, H.values, Q.offsets, Q.indices,
                      Q.values);
    }
    machine.compute(Multiply{in.scale}, dK);
    machine.store(dK, in.dK.block(keys, of_d));
  }

  template <class M>
  void store_dV(M& machine, const SlowSupportGradients& in, const Ranges& ranges, const Kept& kept,
                std::size_t j, std::size_t g) const {
    const io::Range keys = ranges.k[j], of_v = ranges.v[g];
    auto dV = machine.scratch(keys.count(), of_v.count(), "dV");
    machine.compute(FillWith{0}, dV);
    {
      const auto sum = machine.load(kept.sum_dO.block({0, 1}, of_v), "sum w dO");
      machine.compute(AddToRows{1}, dV, sum);
    }
    for (std::size_t i = 0; i < ranges.q.size(); ++i) {
      const auto G = whole(machine, in.scores.C[i][j], "G");
      const auto dO = machine.load(in.dO.block(ranges.q[i], of_v), "dO");
      machine.compute(AddEntryDense{}, dV, G.offsets, G.indices, G.values, dO);
    }
    machine.store(dV, in.dV.block(keys, of_v));
  }
};

}  // namespace attest::sparse
