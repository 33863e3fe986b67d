#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "cpu/kernels/tiles/geometry.hpp"
#include "cpu/kernels/tiles/tensor_io.hpp"
#include "sparse/kernels/gathered.hpp"
#include "sparse/kernels/packed_rows.hpp"

namespace attest::sparse {

/// K or V as float32: where its tensor holds rows of it, or packed. (Other types converted in every
/// visit of a tile made forward 1.5 times as slow.)
/// [sparse/kernels/kernels_test "rows of float32", "where tensors lie"]
class KeyRows {
 public:
  /// Takes room for packed rows where they are needed.
  KeyRows(const attest_problem& problem, const attest_tensor& tensor, Pieces& pieces);
  /// The most it takes.
  static std::int64_t floats(const attest_problem& problem, std::int64_t columns);

  bool is_packed() const { return packed_ != nullptr; }
  /// Requires: is_packed().
  void pack(const cpu::RowBlock& rows) const;

  /// Rows of one head and one batch entry.
  SequenceRows of(const cpu::Batch& batch, std::int64_t head) const;

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
