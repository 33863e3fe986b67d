#include "cpu/kernels/tiles/geometry.hpp"

#include <algorithm>

namespace attest::cpu {

namespace {

// Tells whether a window has an end: a width that is not negative, unless flags say more.
bool bounded(std::int64_t width, const attest_window_ends* ends,
             std::int32_t attest_window_ends::*unbounded) {
  return ends != nullptr ? ends->*unbounded == 0 : width >= 0;
}

}  // namespace

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
  batch.queries = mask.query_lengths != nullptr ? mask.query_lengths[b] : batch.q_length;
  batch.number = b;
  batch.shift = mask.align == ATTEST_BOTTOM_RIGHT ? batch.keys - batch.queries : 0;
  return batch;
}

KeySpan visible_keys(const attest_problem& problem, const Batch& batch, std::int64_t i) {
  if (i >= batch.queries) return {0, 0};
  const attest_mask& mask = problem.mask;
  const std::int64_t aligned = i + batch.shift;
  // No key is further from the aligned one: widths near 2^63 are cut before anything is added.
  const std::int64_t reach = batch.q_length + batch.k_length + 1;
  const std::int64_t left = std::clamp(mask.window_left, -reach, reach),
                     right = std::clamp(mask.window_right, -reach, reach);
  KeySpan span{0, batch.keys};
  if (bounded(mask.window_left, mask.window_ends, &attest_window_ends::left_unbounded)) {
    span.begin = std::clamp<std::int64_t>(aligned - left, 0, batch.keys);
  }
  if (bounded(mask.window_right, mask.window_ends, &attest_window_ends::right_unbounded)) {
    span.end = std::min(span.end, aligned + right + 1);
  }
  span.end = std::max(span.end, span.begin);
  return span;
}

KeySpan visible_keys(const attest_problem& problem, const Batch& batch, std::int64_t first,
                     std::int64_t count) {
  // Both ends of the band grow with i, up to the last query that exists.
  count = std::min(count, batch.queries - first);
  if (count <= 0) return {0, 0};
  return {visible_keys(problem, batch, first).begin,
          visible_keys(problem, batch, first + count - 1).end};
}

}  // namespace attest::cpu
