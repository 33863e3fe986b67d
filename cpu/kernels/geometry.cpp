#include "cpu/kernels/geometry.hpp"

#include <algorithm>

namespace attest::cpu {

Batch batch_of(const attest_problem& problem, std::int64_t b) {
  const attest_mask& mask = problem.mask;
  Batch batch{b, 0, problem.seqlen_q, 0, problem.seqlen_k, 0, 0};
  if (mask.cu_seqlens_q != nullptr) {
    batch = {0,
             mask.cu_seqlens_q[b],
             mask.cu_seqlens_q[b + 1] - mask.cu_seqlens_q[b],
             mask.cu_seqlens_k[b],
             mask.cu_seqlens_k[b + 1] - mask.cu_seqlens_k[b],
             0,
             0};
  }
  batch.keys = mask.key_lengths != nullptr ? mask.key_lengths[b] : batch.k_length;
  batch.shift = mask.align == ATTEST_BOTTOM_RIGHT ? batch.keys - batch.q_length : 0;
  return batch;
}

KeySpan visible_keys(const attest_problem& problem, const Batch& batch, std::int64_t i) {
  const std::int64_t aligned = i + batch.shift;
  const std::int64_t left = problem.mask.window_left, right = problem.mask.window_right;
  KeySpan span{0, batch.keys};
  // Compared without adding, so that widths near 2^63 do not overflow.
  if (left >= 0 && aligned > left) span.begin = std::min(aligned - left, batch.keys);
  if (right >= 0 && right < batch.keys - 1 - aligned) span.end = aligned + right + 1;
  span.end = std::max(span.end, span.begin);
  return span;
}

KeySpan visible_keys(const attest_problem& problem, const Batch& batch, std::int64_t first,
                     std::int64_t count) {
  // Both ends of the band grow with i.
  return {visible_keys(problem, batch, first).begin,
          visible_keys(problem, batch, first + count - 1).end};
}

}  // namespace attest::cpu
