#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "cpu/kernels/tiles/geometry.hpp"

/// Rows of float32 in the workspace of a call, one after another.
namespace attest::sparse {

/// The rows of Q or K as their tensors hold them.
struct StoredRows {
  std::int64_t heads;
  std::int64_t count;     // of one head, in all batch entries
  std::int64_t of_entry;  // of one head and batch entry, where entries are not packed
};
StoredRows stored_queries(const attest_problem& problem);
StoredRows stored_keys(const attest_problem& problem);

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
};

/// Hands out the pieces of a workspace of floats.
class Pieces {
 public:
  explicit Pieces(void* workspace) : next_(static_cast<float*>(workspace)) {}

  float* take(std::int64_t floats) {
    float* const piece = next_;
    next_ += floats;
    return piece;
  }
  PackedRows rows(const StoredRows& stored, std::int64_t columns) {
    return {take(PackedRows::floats(stored.heads, stored.count, columns)), stored.count, columns};
  }
  /// Returns the memory that is left.
  float* rest() const { return next_; }

 private:
  float* next_;
};

}  // namespace attest::sparse
