#include "schedules/engine/heads.hpp"

#include <sstream>
#include <string>

#include "core/error.hpp"
#include "io/schedule/schedule.hpp"

namespace attest::schedules {
namespace {

using io::MutableSlowMatrix;

// Rows `first` .. of one head of a (batch, seqlen, heads, dim) tensor, or of a (batch, heads,
// seqlen) tensor as a column.
MutableSlowMatrix part(const char* name, const attest_tensor* tensor, DType dtype,
                       std::int64_t rows, std::int64_t columns, std::int64_t batch,
                       std::int64_t first, std::int64_t head) {
  if (tensor == nullptr) return {name, rows, columns, dtype, nullptr, columns};
  const bool rank3 = tensor->ndim == 3;
  const std::int64_t row_stride = tensor->strides[rank3 ? 2 : 1];
  const std::int64_t column_stride = rank3 ? 1 : tensor->strides[3];
  const std::int64_t offset =
      batch * tensor->strides[0] + first * row_stride + head * tensor->strides[rank3 ? 1 : 2];
  std::byte* data = static_cast<std::byte*>(tensor->data) + tensor->byte_offset +
                    offset * static_cast<std::int64_t>(size_bytes(dtype));
  return {name, rows, columns, dtype, data, row_stride, column_stride};
}

// The parts of one head of a problem.
struct Parts {
  const attest_problem& problem;
  Batch batch;
  std::int64_t head;

  Parts(const attest_problem& p, HeadIndex index)
      : problem(p), batch(batch_of(p, index.batch)), head(index.head) {}

  ScoreRule rule() const { return {&problem, batch, head}; }
  MutableSlowMatrix query_rows(const char* name, const attest_tensor* tensor,
                               std::int64_t columns) const {
    return part(name, tensor, dtype_of(problem.dtype), batch.q_length, columns, batch.tensor_batch,
                batch.q_begin, head);
  }
  MutableSlowMatrix key_rows(const char* name, const attest_tensor* tensor,
                             std::int64_t columns) const {
    return part(name, tensor, dtype_of(problem.dtype), batch.k_length, columns, batch.tensor_batch,
                batch.k_begin, head / (problem.num_heads_q / problem.num_heads_kv));
  }
  MutableSlowMatrix scalars(const char* name, const attest_tensor* tensor) const {
    return part(name, tensor, DType::f32, batch.q_length, 1, batch.tensor_batch, batch.q_begin,
                head);
  }
  // Returns a matrix that only this room's schedules save: no tensor holds it.
  MutableSlowMatrix saved(const char* name, std::int64_t columns) const {
    return {name, batch.q_length, columns, DType::f32, nullptr, columns};
  }
};

}  // namespace

ForwardHead forward_head(const attest_forward_args& args, HeadIndex index) {
  const Parts parts(*args.problem, index);
  const std::int64_t dk = args.problem->head_dim_qk, dv = args.problem->head_dim_v;
  return {parts.query_rows("Q", args.Q, dk), parts.key_rows("K", args.K, dk),
          parts.key_rows("V", args.V, dv),   parts.query_rows("O", args.O, dv),
          parts.scalars("LSE", args.LSE),    parts.rule()};
}

BackwardHead backward_head(const attest_backward_args& args, HeadIndex index) {
  const Parts parts(*args.problem, index);
  const std::int64_t dk = args.problem->head_dim_qk, dv = args.problem->head_dim_v;
  return {parts.query_rows("Q", args.Q, dk),
          parts.key_rows("K", args.K, dk),
          parts.key_rows("V", args.V, dv),
          parts.query_rows("O", args.O, dv),
          parts.query_rows("dO", args.dO, dv),
          parts.scalars("LSE", args.LSE),
          parts.scalars("dLSE", args.dLSE),
          parts.saved("P", parts.batch.k_length),
          parts.saved("m", 1),
          parts.saved("l", 1),
          parts.query_rows("dQ", args.dQ, dk),
          parts.key_rows("dK", args.dK, dk),
          parts.key_rows("dV", args.dV, dv),
          parts.rule()};
}

bool uniform_batches(const attest_problem& problem) {
  return problem.mask.key_lengths == nullptr && problem.mask.cu_seqlens_q == nullptr;
}

namespace {

template <class Length>
bool has_single(const attest_problem& problem, const Length& length) {
  for (std::int64_t b = 0; b < (uniform_batches(problem) ? 1 : problem.batch); ++b) {
    if (length(batch_of(problem, b)) == 1) return true;
  }
  return false;
}

}  // namespace

bool has_single_query(const attest_problem& problem) {
  return has_single(problem, [](const Batch& batch) { return batch.q_length; });
}

bool has_single_key(const attest_problem& problem) {
  return has_single(problem, [](const Batch& batch) { return batch.keys; }) ||
         has_single(problem, [](const Batch& batch) { return batch.k_length; });
}

void require_countable(const attest_problem& problem) {
  if (problem.dtype == ATTEST_F64) {
    throw InvalidProblem("dtype: f64, but schedules compute in f32; choose f32, bf16 or f16");
  }
}

void require_one_head(const attest_problem& problem) {
  if (problem.batch == 1 && problem.num_heads_q == 1) return;
  throw InvalidProblem("trace: batch is " + std::to_string(problem.batch) + " and num_heads_q " +
                       std::to_string(problem.num_heads_q) +
                       ", but a trace has one head; pass b=1,hq=1 (words of heads add)");
}

void require_no_softcap(const attest_problem& problem) {
  if (problem.softcap > 0) {
    std::ostringstream softcap;
    softcap << problem.softcap;
    throw io::NotForProblem("softcap: " + softcap.str() +
                            ", but a schedule that stores P has no score left to go back through; "
                            "set softcap=0 or choose key_stationary or two_pass");
  }
}

}  // namespace attest::schedules
