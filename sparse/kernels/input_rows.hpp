#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "cpu/kernels/tiles/tensor_io.hpp"
#include "sparse/kernels/gathered.hpp"
#include "sparse/kernels/packed_rows.hpp"

namespace attest::sparse {

/// Q, K, V or dO as float32: where its tensor holds rows of it, or packed once a call.
/// [sparse/kernels/kernels_test "rows of float32", "where tensors lie"]
class InputRows {
 public:
  /// Takes room for packed rows where they are needed.
  InputRows(const attest_tensor& tensor, const StoredRows& stored, Pieces& pieces);
  /// The most it takes.
  static std::int64_t floats(const StoredRows& stored, std::int64_t columns) {
    return PackedRows::floats(stored.heads, stored.count, columns);
  }

  bool is_packed() const { return packed_ != nullptr; }
  /// Does nothing where rows are read in place.
  void pack(const cpu::RowBlock& rows) const;

  /// Rows from row `first` of a batch entry of the tensor on.
  SequenceRows at(std::int64_t batch, std::int64_t first, std::int64_t head) const {
    return {first_ + offset(batch, first, head), row_stride_, tensor_.shape[3]};
  }

 private:
  std::int64_t offset(std::int64_t batch, std::int64_t row, std::int64_t head) const {
    return batch * batch_stride_ + row * row_stride_ + head * head_stride_;
  }

  const attest_tensor& tensor_;
  float* packed_ = nullptr;
  const float* first_;
  std::int64_t batch_stride_, row_stride_, head_stride_;
};

}  // namespace attest::sparse
