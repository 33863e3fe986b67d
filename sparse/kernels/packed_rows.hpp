#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "cpu/kernels/tiles/geometry.hpp"
#include "sparse/kernels/gathered.hpp"

/// Rows that many tiles meet, converted to float32 once a call and laid one after another.
namespace attest::sparse {

/// Queries and keys of all batch entries, as their tensors hold them.
std::int64_t stored_queries(const attest_problem& problem);
std::int64_t stored_keys(const attest_problem& problem);

/// Where a batch entry begins among them.
inline std::int64_t first_query(const attest_problem& problem, const cpu::Batch& batch) {
  return batch.tensor_batch * problem.seqlen_q + batch.q_begin;
}
inline std::int64_t first_key(const attest_problem& problem, const cpu::Batch& batch) {
  return batch.tensor_batch * problem.seqlen_k + batch.k_begin;
}

/// The rows of one head after those of another, `columns` floats each.
struct PackedRows {
  float* data;
  std::int64_t rows;  // of one head
  std::int64_t columns;

  static std::int64_t floats(std::int64_t heads, std::int64_t rows, std::int64_t columns) {
    return heads * rows * columns;
  }
  float* at(std::int64_t head, std::int64_t row) const {
    return data + (head * rows + row) * columns;
  }
  /// Returns the rows of a head from row `first` on.
  SequenceRows of(std::int64_t head, std::int64_t first) const {
    return {at(head, first), columns, columns};
  }
};

/// x[0], x[stride], ... become 0: `count` of them.
inline void clear_column(float* x, std::int64_t stride, std::int64_t count) {
  for (std::int64_t c = 0; c < count; ++c) x[c * stride] = 0;
}

/// Hands out the pieces of a workspace of floats.
class Pieces {
 public:
  explicit Pieces(void* workspace) : next_(static_cast<float*>(workspace)) {}

  float* take(std::int64_t floats) {
    float* const piece = next_;
    next_ += floats;
    return piece;
  }
  PackedRows rows(std::int64_t heads, std::int64_t rows, std::int64_t columns) {
    return {take(PackedRows::floats(heads, rows, columns)), rows, columns};
  }
  /// Returns the memory that is left.
  float* rest() const { return next_; }

 private:
  float* next_;
};

}  // namespace attest::sparse
