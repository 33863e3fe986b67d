// Standard attention (Dao et al. 2022, Algorithms 0 and 3): S and P of a head are formed as whole
// matrices, in the workspace.
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/kernels/kernel.hpp"
#include "cpu/kernels/tiles/score_tile.hpp"
#include "cpu/kernels/tiles/tensor_io.hpp"
#include "cpu/kernels/vectors/arithmetic.hpp"

namespace attest::cpu {
namespace {

struct Sizes {
  std::int64_t q, k, d, dv;
  explicit Sizes(const attest_problem& p)
      : q(p.seqlen_q), k(p.seqlen_k), d(p.head_dim_qk), dv(p.head_dim_v) {}
};

std::size_t floats_per_thread(const attest_problem& problem, std::uint32_t direction) {
  const Sizes n(problem);
  const std::int64_t forward = n.q * n.d + n.k * n.d + n.k * n.dv + n.q * n.k + n.q * n.dv + n.q;
  // S, slope, dP; Q, O, dO, dQ; K twice, V, dK, dV; LSE, dLSE, delta.
  const std::int64_t backward =
      3 * n.q * n.k + 2 * n.q * (n.d + n.dv) + n.k * (3 * n.d + 2 * n.dv) + 3 * n.q;
  return static_cast<std::size_t>(direction == ATTEST_BACKWARD ? backward : forward);
}

std::size_t workspace_bytes(const void*, const attest_problem* problem, std::uint32_t direction) {
  return floats_per_thread(*problem, direction) * sizeof(float) *
         static_cast<std::size_t>(std::max(problem->num_threads, 1));
}

// Softmax of every row in place; LSE of each.
void softmax_rows(std::int64_t rows, std::int64_t keys, float* S, float* LSE) {
  for (std::int64_t r = 0; r < rows; ++r) {
    float* row = S + r * keys;
    const float maximum = row_maximum(row, keys, -std::numeric_limits<float>::infinity());
    if (maximum == -std::numeric_limits<float>::infinity()) {
      clear_masked(row, keys);
      LSE[r] = maximum + row_sum(row, keys);
      continue;
    }
    exp_shifted(row, keys, maximum);
    const float sum = row_sum(row, keys);
    scale_row(row, keys, 1.0f / sum);
    LSE[r] = maximum + std::log(sum);
  }
}

void forward_head(const attest_forward_args& args, std::int64_t b, std::int64_t head, Arena arena) {
  const attest_problem& problem = *args.problem;
  const Batch batch = batch_of(problem, b);
  const std::int64_t q = batch.q_length, k = batch.keys, d = problem.head_dim_qk,
                     dv = problem.head_dim_v;
  const std::int64_t kv_head = head / (problem.num_heads_q / problem.num_heads_kv);
  const RowBlock queries{batch.tensor_batch, batch.q_begin, q, head};
  const RowBlock keys{batch.tensor_batch, batch.k_begin, k, kv_head};
  float *Q = arena.take(q * d), *Kt = arena.take(k * d), *V = arena.take(k * dv),
        *P = arena.take(q * k), *O = arena.take(q * dv), *LSE = arena.take(q);
  load_rows(*args.Q, queries, Q);
  load_transposed(*args.K, keys, Kt);
  load_rows(*args.V, keys, V);
  score_tile(problem, batch, {head, 0, q, 0, k}, Q, Kt, P, nullptr);
  softmax_rows(q, k, P, LSE);
  std::fill(O, O + q * dv, 0.0f);
  multiply_add(O, dv, {P, k, 1}, V, dv, q, dv, k);
  store_rows(*args.O, queries, O);
  if (args.LSE != nullptr) store_scalars(*args.LSE, queries, LSE);
}

attest_status forward(const void*, const attest_forward_args* args) {
  const attest_problem& problem = *args->problem;
  if (supported(problem) != ATTEST_OK) return ATTEST_UNSUPPORTED;
  const std::size_t floats = floats_per_thread(problem, ATTEST_FORWARD);
#pragma omp parallel for collapse(2) schedule(dynamic) num_threads(problem.num_threads)
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t head = 0; head < problem.num_heads_q; ++head) {
      forward_head(*args, b, head, Arena(args->workspace, floats, omp_get_thread_num()));
    }
  }
  return ATTEST_OK;
}

// All query heads of one K/V head: their dK and dV add up in one place and order.
void backward_group(const attest_backward_args& args, std::int64_t b, std::int64_t kv_head,
                    Arena arena) {
  const attest_problem& problem = *args.problem;
  const Batch batch = batch_of(problem, b);
  const std::int64_t q = batch.q_length, k = batch.keys, d = problem.head_dim_qk,
                     dv = problem.head_dim_v;
  const float scale = static_cast<float>(problem.softmax_scale);
  float *P = arena.take(q * k), *slope = arena.take(q * k), *dS = arena.take(q * k),
        *Q = arena.take(q * d), *dQ = arena.take(q * d), *O = arena.take(q * dv),
        *dO = arena.take(q * dv), *K = arena.take(k * d), *Kt = arena.take(k * d),
        *dK = arena.take(batch.k_length * d), *Vt = arena.take(k * dv),
        *dV = arena.take(batch.k_length * dv), *LSE = arena.take(q), *dLSE = arena.take(q),
        *delta = arena.take(q);
  if (!has_slope(problem)) slope = nullptr;
  const RowBlock keys{batch.tensor_batch, batch.k_begin, k, kv_head};
  load_rows(*args.K, keys, K);
  load_transposed(*args.K, keys, Kt);
  load_transposed(*args.V, keys, Vt);
  // Keys that do not exist are not read; their gradients are 0.
  std::fill(dK, dK + batch.k_length * d, 0.0f);
  std::fill(dV, dV + batch.k_length * dv, 0.0f);
  const std::int64_t group = problem.num_heads_q / problem.num_heads_kv;
  for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const RowBlock queries{batch.tensor_batch, batch.q_begin, q, head};
    load_rows(*args.Q, queries, Q);
    load_rows(*args.O, queries, O);
    load_rows(*args.dO, queries, dO);
    load_scalars(*args.LSE, queries, LSE);
    if (args.dLSE != nullptr) load_scalars(*args.dLSE, queries, dLSE);
    row_deltas(dO, O, args.dLSE != nullptr ? dLSE : nullptr, q, dv, delta);
    score_tile(problem, batch, {head, 0, q, 0, k}, Q, Kt, P, slope);
    probabilities(LSE, q, k, P);
    multiply_add(dV, dv, {P, 1, k}, dO, dv, k, dv, q);
    std::fill(dS, dS + q * k, 0.0f);
    multiply_add(dS, k, {dO, dv, 1}, Vt, k, q, k, dv);
    score_gradients(P, slope, delta, q, k, dS);
    std::fill(dQ, dQ + q * d, 0.0f);
    multiply_add(dQ, d, {dS, k, 1}, K, d, q, d, k);
    scale_row(dQ, q * d, scale);
    store_rows(*args.dQ, queries, dQ);
    multiply_add(dK, d, {dS, 1, k}, Q, d, k, d, q);
  }
  scale_row(dK, k * d, scale);
  const RowBlock all_keys{batch.tensor_batch, batch.k_begin, batch.k_length, kv_head};
  store_rows(*args.dK, all_keys, dK);
  store_rows(*args.dV, all_keys, dV);
}

attest_status backward(const void*, const attest_backward_args* args) {
  const attest_problem& problem = *args->problem;
  if (supported(problem) != ATTEST_OK) return ATTEST_UNSUPPORTED;
  const std::size_t floats = floats_per_thread(problem, ATTEST_BACKWARD);
#pragma omp parallel for collapse(2) schedule(dynamic) num_threads(problem.num_threads)
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t head = 0; head < problem.num_heads_kv; ++head) {
      backward_group(*args, b, head, Arena(args->workspace, floats, omp_get_thread_num()));
    }
  }
  return ATTEST_OK;
}

}  // namespace

const attest_kernel& standard_kernel() {
  static const attest_kernel kernel = [] {
    attest_kernel k{};
    k.struct_size = sizeof k;
    k.abi_version = ATTEST_ABI_VERSION;
    k.description =
        common_description("cpu/standard", "unfused attention: S and P are formed", nullptr);
    k.workspace_bytes = workspace_bytes;
    k.forward = forward;
    k.backward = backward;
    return k;
  }();
  return kernel;
}

}  // namespace attest::cpu
