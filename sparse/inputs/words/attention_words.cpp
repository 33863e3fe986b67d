#include "sparse/inputs/words/attention_words.hpp"

namespace attest::sparse {

std::vector<float> full_rows(const SparseOperands& operands) {
  operands.validate();
  const CsrMatrix support = product_structure(operands.Q, operands.K);
  std::vector<float> full;
  for (std::int64_t row = 0; row < support.rows; ++row) {
    const auto of_row = static_cast<std::int64_t>(support.row_columns(row).size());
    full.push_back(of_row == support.columns ? 1 : 0);
  }
  return full;
}

AttentionStore::AttentionStore(const SparseOperands& operands)
    : Q_(operands.Q),
      K_(operands.K),
      V_(operands.V),
      full_(full_rows(operands)),
      O_(static_cast<std::size_t>(operands.Q.rows * operands.V.columns)),
      LSE_(static_cast<std::size_t>(operands.Q.rows)),
      scale_(static_cast<float>(operands.softmax_scale)) {}

SlowAttention AttentionStore::slow() {
  const std::int64_t rows = Q_.matrix().rows, width = V_.matrix().columns;
  return {Q_.slow(),
          K_.slow(),
          V_.slow(),
          io::SlowMatrix("full", rows, 1, DType::f32, {full_.data(), 1}),
          io::MutableSlowMatrix("O", rows, width, DType::f32, O_.data(), width),
          io::MutableSlowMatrix("LSE", rows, 1, DType::f32, LSE_.data(), 1),
          scale_};
}

io::Words csr_words(const CsrMatrix& matrix, io::Range rows) {
  const auto at = [&](std::int64_t row) {
    return matrix.row_offsets[static_cast<std::size_t>(row)];
  };
  return io::Words(rows.count()) + 1 + io::Words(2) * (at(rows.end) - at(rows.begin));
}

}  // namespace attest::sparse
