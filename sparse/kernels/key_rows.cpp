#include "sparse/kernels/key_rows.hpp"

namespace attest::sparse {

KeyRows::KeyRows(const attest_problem& problem, const attest_tensor& tensor, Pieces& pieces)
    : tensor_(tensor),
      first_(cpu::float_rows(tensor)),
      batch_stride_(tensor.strides[0]),
      row_stride_(tensor.strides[1]),
      head_stride_(tensor.strides[2]) {
  if (first_ != nullptr) return;
  const std::int64_t rows = stored_keys(problem), columns = tensor.shape[3];
  packed_ = pieces.take(floats(problem, columns));
  first_ = packed_;
  batch_stride_ = problem.seqlen_k * columns;
  row_stride_ = columns;
  head_stride_ = rows * columns;
}

std::int64_t KeyRows::floats(const attest_problem& problem, std::int64_t columns) {
  return PackedRows::floats(problem.num_heads_kv, stored_keys(problem), columns);
}

void KeyRows::pack(const cpu::RowBlock& rows) const {
  cpu::load_rows(tensor_, rows, packed_ + offset(rows.batch, rows.first, rows.head));
}

SequenceRows KeyRows::of(const cpu::Batch& batch, std::int64_t head) const {
  return {first_ + offset(batch.tensor_batch, batch.k_begin, head), row_stride_, tensor_.shape[3]};
}

}  // namespace attest::sparse
