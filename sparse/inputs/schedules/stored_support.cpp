#include "sparse/inputs/schedules/stored_support.hpp"

#include <algorithm>

namespace attest::sparse {
namespace {

io::MutableSlowMatrix column(const char* name, std::vector<float>& elements) {
  return {name, static_cast<std::int64_t>(elements.size()), 1, DType::f32, elements.data(), 1};
}

}  // namespace

SupportStore::SupportStore(const SparseOperands& operands, const StoredSupport& schedule)
    : scores_(operands.Q, operands.K, {schedule.block_q, schedule.block_k, OuterProduct::kInputs}),
      V_(operands.V, schedule.block_k, schedule.block_v),
      queries_(operands.Q.rows),
      keys_(operands.K.rows),
      width_(operands.V.columns),
      scale_(static_cast<float>(operands.softmax_scale)),
      full_(full_rows(operands)),
      m_(static_cast<std::size_t>(queries_)),
      O_(static_cast<std::size_t>(queries_ * width_)),
      LSE_(m_) {}

SlowSupport SupportStore::slow() {
  SlowSupport in;
  in.scores = scores_.slow();
  in.V = V_.slow();
  in.full = column("full", full_);
  in.m = column("m", m_);
  in.O = io::MutableSlowMatrix("O", queries_, width_, DType::f32, O_.data(), width_);
  in.LSE = column("LSE", LSE_);
  in.keys = keys_;
  in.scale = scale_;
  return in;
}

io::Traffic StoredSupport::cost(const SparseOperands& operands) const {
  return cost(operands, EntrySums(product_structure(operands.Q, operands.K)));
}

io::Traffic StoredSupport::cost(const SparseOperands& operands, const EntrySums& support) const {
  const std::int64_t q = operands.Q.rows, k = operands.K.rows, dv = operands.V.columns;
  const std::vector<io::Range> queries = blocks_of(q, block_q), keys = blocks_of(k, block_k);
  const OuterPeaks of_scores(scores(), operands.Q, operands.K, support);
  io::Words peak = 0;
  for (std::size_t j = 0; j < keys.size(); ++j) {
    std::vector<io::Words> V;  // what a block of columns takes beside what rows do
    const std::vector<io::Range> columns = blocks_of(dv, block_v);
    for (const io::Range& of_v : columns) {
      const CsrMatrix block = block_of(operands.V, keys[j], of_v);
      V.push_back(io::Words(of_v.count()) + 1 + csr_words(block, {0, block.rows}));
    }
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const io::Words rows = queries[i].count();
      const io::Words entries = io::Words(2) * support.in(queries[i], keys[j]);
      peak = std::max(peak, io::Words(2) * rows + of_scores.of(i, j));
      for (std::size_t g = 0; g < columns.size(); ++g) {
        peak = std::max(peak, rows * (io::Words(columns[g].count()) + 4) + entries + V[g]);
      }
    }
  }
  const io::Words c = io::tiles(q, block_q), c_k = io::tiles(k, block_k),
                  e = io::tiles(dv, block_v);
  const io::Words Z = support.all();
  const io::Traffic product = scores().cost(operands.Q, operands.K, support);
  return {product.reads +
              words(io::Words(q) +
                    e * ((c_k + 2) * q + io::Words(2) * c * c_k + io::Words(2) * Z + c * k) +
                    io::Words(2) * c * operands.V.nonzeros()),
          product.writes + words(io::Words(q) * (io::Words(dv) + 2)), words(peak)};
}

}  // namespace attest::sparse
