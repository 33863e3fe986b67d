#pragma once

#include "sparse/inputs/schedules/sparse_products.hpp"

namespace attest::sparse {

/// Q and K by blocks of rows, compressed by columns; the scores of the support by blocks; V by
/// blocks of keys and of columns; statistics of rows.
struct SlowSupport {
  SlowProduct scores;
  std::vector<std::vector<SlowCsr>> V;  // [columns][keys]
  io::SlowMatrix full;                  // (q, 1)
  io::MutableSlowMatrix m;              // (q, 1), workspace
  io::MutableSlowMatrix O, LSE;
  std::int64_t keys = 0;
  float scale = 1;
};

struct StoredSupport;

/// Owns the operands, cut as the schedule needs them, and the results.
class SupportStore {
 public:
  SupportStore(const SparseOperands& operands, const StoredSupport& schedule);

  SlowSupport slow();
  const std::vector<float>& O() const { return O_; }
  const std::vector<float>& LSE() const { return LSE_; }

 private:
  ProductStore scores_;
  CsrGrid V_;
  std::int64_t queries_, keys_, width_;
  float scale_;
  std::vector<float> full_, m_, O_, LSE_;
};

/// Scores of the support in slow memory by an OuterProduct, their maxima on the way; then O in
/// dense tiles of block_q x block_v. With nnz entries and Z results nnz sqrt(Z/M) words, the form
/// for small M.
///
/// Cost:   with c = ceil(q/block_q), c' = ceil(k/block_k), e = ceil(dv/block_v)
///         reads = OuterProduct's + q + e ((c' + 2) q + 2c c' + 2Z + c k) + 2c nnz(V),
///         writes = Z + 2q + q dv,
///         peak = max over blocks of (OuterProduct's + 2i,
///                i (v + 4) + v + 1 + 2 Z_ij + words of V's block)
///         [sparse/inputs/schedules/schedules_test "closed forms"]
/// Source: Li et al. 2024, the small-cache case of theorem 4.5 (differs: dense softmax).
struct StoredSupport {
  std::int64_t block_q, block_k, block_v;

  template <io::Machine M>
  void run(M& machine, const SlowSupport& in) const {
    const std::vector<io::Range> queries = blocks_of(in.O.rows(), block_q);
    for (std::size_t i = 0; i < queries.size(); ++i) store_scores(machine, in, i, queries[i]);
    const std::vector<io::Range> columns = blocks_of(in.O.columns(), block_v);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      for (std::size_t i = 0; i < queries.size(); ++i) {
        attend(machine, in, {i, c}, queries[i], columns[c]);
      }
    }
  }

  OuterProduct scores() const { return {block_q, block_k}; }

  io::Traffic cost(const SparseOperands& operands) const;
  io::Traffic cost(const SparseOperands& operands, const EntrySums& support) const;

 private:
  struct Tile {
    std::size_t queries, columns;
  };

  // Scores and maxima of a block of rows.
  template <class M>
  void store_scores(M& machine, const SlowSupport& in, std::size_t i, io::Range rows) const {
    const auto full = machine.load(in.full.block(rows), "full");
    auto m = machine.scratch(rows.count(), 1, "m");
    machine.compute(StartShifts{}, m, full);
    for (std::size_t j = 0; j < in.scores.B.size(); ++j) {
      scores().run_block(machine, in.scores, i, j, [&](auto& S) {
        machine.compute(Multiply{in.scale}, S.values);
        machine.compute(RaiseShifts{}, m, S.offsets, S.values);
      });
    }
    machine.store(m, in.m.block(rows));
  }

  // One tile of O.
  template <class M>
  void attend(M& machine, const SlowSupport& in, Tile tile, io::Range rows,
              io::Range columns) const {
    const auto full = machine.load(in.full.block(rows), "full");
    auto m = machine.scratch(rows.count(), 1, "m");
    auto l = machine.scratch(rows.count(), 1, "l");
    auto O = machine.scratch(rows.count(), columns.count(), "O");
    auto sum_V = machine.scratch(1, columns.count(), "sum V");
    machine.load_into(m, in.m.block(rows));
    machine.compute(FillWith{0}, l);
    machine.compute(FillWith{0}, O);
    machine.compute(FillWith{0}, sum_V);
    for (std::size_t j = 0; j < in.scores.B.size(); ++j) {
      const SlowCsr& scores = in.scores.C[tile.queries][j];
      const SlowCsr& values = in.V[tile.columns][j];
      const CsrTiles S(machine, scores, {0, scores.rows()}, "S");
      const CsrTiles V(machine, values, {0, values.rows()}, "V");
      machine.compute(AddEntries{}, O, l, sum_V, m, full, S.offsets, S.indices, S.values, V.offsets,
                      V.indices, V.values);
    }
    machine.compute(FinishSupport{static_cast<float>(in.keys)}, O, m, l, sum_V, full);
    machine.store(O, in.O.block(rows, columns));
    if (tile.columns == 0) machine.store(m, in.LSE.block(rows));  // m is LSE now
  }
};

}  // namespace attest::sparse
