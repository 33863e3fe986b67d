#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"

/// Where sequences lie and which keys a query sees, from the ABI's problem. The kernels' own
/// arithmetic: the reference has another.
namespace attest::cpu {

/// One batch entry.
struct Batch {
  std::int64_t tensor_batch, q_begin, q_length, k_begin, k_length;
  std::int64_t keys;         // keys that exist
  std::int64_t shift;        // query i is aligned with key i + shift
  std::int64_t queries = 0;  // queries that exist
  std::int64_t number = 0;   // of the batch entries
};

Batch batch_of(const attest_problem& problem, std::int64_t b);

/// Keys begin .. end-1 of the batch entry.
struct KeySpan {
  std::int64_t begin, end;
};

/// Returns the keys that band and lengths leave to query i.
KeySpan visible_keys(const attest_problem& problem, const Batch& batch, std::int64_t i);

/// The union over queries first .. first+count-1.
KeySpan visible_keys(const attest_problem& problem, const Batch& batch, std::int64_t first,
                     std::int64_t count);

/// Tells whether the mask of heads leaves key j to query i of a head of the batch entry.
inline bool shown_to_head(const attest_problem& problem, const Batch& batch, std::int64_t head,
                          std::int64_t i, std::int64_t j) {
  const attest_head_mask* const mask = problem.mask.per_head;
  if (mask == nullptr) return true;
  const std::int64_t* const strides = mask->strides;
  return mask->visible[batch.number * strides[0] + head * strides[1] + i * strides[2] +
                       j * strides[3]] != 0;
}

}  // namespace attest::cpu
