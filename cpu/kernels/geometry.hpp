#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"

/// Where sequences lie and which keys a query sees, from the ABI's problem. The kernels' own
/// arithmetic: the reference has another.
namespace attest::cpu {

/// One batch entry.
struct Batch {
  std::int64_t tensor_batch, q_begin, q_length, k_begin, k_length;
  std::int64_t keys;   // keys that exist
  std::int64_t shift;  // query i is aligned with key i + shift
};

Batch batch_of(const attest_problem& problem, std::int64_t b);

/// Keys begin .. end-1 of the batch entry.
struct KeySpan {
  std::int64_t begin, end;
};

/// Returns the keys that band and key lengths leave to query i.
KeySpan visible_keys(const attest_problem& problem, const Batch& batch, std::int64_t i);

/// The union over queries first .. first+count-1.
KeySpan visible_keys(const attest_problem& problem, const Batch& batch, std::int64_t first,
                     std::int64_t count);

}  // namespace attest::cpu
