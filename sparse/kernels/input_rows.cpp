#include "sparse/kernels/input_rows.hpp"

namespace attest::sparse {

InputRows::InputRows(const attest_tensor& tensor, const StoredRows& stored, Pieces& pieces)
    : tensor_(tensor),
      first_(cpu::float_rows(tensor)),
      batch_stride_(tensor.strides[0]),
      row_stride_(tensor.strides[1]),
      head_stride_(tensor.strides[2]) {
  if (first_ != nullptr) return;
  const std::int64_t columns = tensor.shape[3];
  packed_ = pieces.take(floats(stored, columns));
  first_ = packed_;
  batch_stride_ = stored.of_entry * columns;
  row_stride_ = columns;
  head_stride_ = stored.count * columns;
}

void InputRows::pack(const cpu::RowBlock& rows) const {
  if (!is_packed()) return;
  cpu::load_rows(tensor_, rows, packed_ + offset(rows.batch, rows.first, rows.head));
}

}  // namespace attest::sparse
