#include "sparse/inputs/stored_support.hpp"

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
  const std::int64_t q = operands.Q.rows, k = operands.K.rows, dv = operands.V.columns;
  const CsrMatrix structure = product_structure(operands.Q, operands.K);
  const io::Words c = io::tiles(q, block_q), c_k = io::tiles(k, block_k),
                  e = io::tiles(dv, block_v);
  const io::Words Z = structure.nonzeros();
  io::Words peak = 0;
  for (const io::Range& i : blocks_of(q, block_q)) {
    const io::Words rows = i.count();
    for (const io::Range& j : blocks_of(k, block_k)) {
      const io::Words found = block_of(structure, i, j).nonzeros();
      peak =
          std::max(peak, io::Words(2) * rows + scores().block_peak(operands.Q, operands.K, i, j));
      for (const io::Range& columns : blocks_of(dv, block_v)) {
        const CsrMatrix V = block_of(operands.V, j, columns);
        peak = std::max(peak, rows * (io::Words(columns.count()) + 4) + columns.count() + 1 +
                                  io::Words(2) * found + csr_words(V, {0, V.rows}));
      }
    }
  }
  const io::Traffic product = scores().cost(operands.Q, operands.K);
  return {product.reads +
              words(io::Words(q) +
                    e * ((c_k + 2) * q + io::Words(2) * c * c_k + io::Words(2) * Z + c * k) +
                    io::Words(2) * c * operands.V.nonzeros()),
          product.writes + words(io::Words(q) * (io::Words(dv) + 2)), words(peak)};
}

}  // namespace attest::sparse
