#include <omp.h>

#include <algorithm>
#include <vector>

#include "cpu/kernels/arithmetic.hpp"
#include "cpu/kernels/bias.hpp"
#include "cpu/kernels/flash2.hpp"
#include "cpu/kernels/kernel.hpp"
#include "cpu/kernels/nonfinite/special_values.hpp"
#include "cpu/kernels/running_softmax.hpp"
#include "cpu/kernels/score_tile.hpp"
#include "cpu/kernels/tensor_io.hpp"

namespace attest::cpu {
namespace {

void forward_block(const attest_forward_args& args, std::int64_t b, std::int64_t head,
                   std::int64_t first, Arena arena) {
  const attest_problem& problem = *args.problem;
  const Batch batch = batch_of(problem, b);
  if (first >= batch.q_length) return;
  const PageRow pages = pages_of(problem, b);
  const std::int64_t first_key = pages.table == nullptr ? batch.k_begin : 0;
  const std::int64_t d = problem.head_dim_qk, dv = problem.head_dim_v;
  const std::int64_t rows = std::min(kBlockQ, batch.q_length - first);
  const std::int64_t kv_head = head / (problem.num_heads_q / problem.num_heads_kv);
  const RowBlock queries{batch.tensor_batch, batch.q_begin + first, rows, head};
  float *Q = arena.take(kBlockQ * d), *O = arena.take(kBlockQ * dv), *Kt = arena.take(kBlockK * d),
        *V = arena.take(kBlockK * std::max(d, dv)), *S = arena.take(kBlockQ * kBlockK),
        *m = arena.take(kBlockQ), *l = arena.take(kBlockQ);
  load_rows(*args.Q, queries, Q);
  std::fill(O, O + rows * dv, 0.0f);
  const std::int64_t existing = std::clamp<std::int64_t>(batch.queries - first, 0, rows);
  start_rows(existing, m, l, sink_of(problem, head));
  start_rows(rows - existing, m + existing, l + existing);  // past the query length: no sink
  const KeySpan span = visible_keys(problem, batch, first, rows);
  for (std::int64_t key = span.begin; key < span.end; key += kBlockK) {
    const std::int64_t count = std::min(kBlockK, span.end - key);
    const RowBlock keys{batch.tensor_batch, first_key + key, count, kv_head};
    load_transposed(*args.K, pages, keys, V, Kt);  // V comes after K
    load_rows(*args.V, pages, keys, V);
    const std::vector<SpecialValue> special = take_special_values(V, count, dv);
    const ScoreBlock block{head, first, rows, key, count};
    score_tile(problem, batch, block, Q, Kt, S, nullptr);
    if (args.bias != nullptr) add_bias(*args.bias, b, block, S);
    update_rows(rows, count, dv, S, m, l, O);
    multiply_add(O, dv, {S, count, 1}, V, dv, rows, dv, count);
    if (!special.empty()) {
      add_special_values(args, b, batch, block, special, S, dv, O);
    }
  }
  finish_rows(rows, dv, m, l, O);
  store_rows(*args.O, queries, O);
  if (args.LSE != nullptr) store_scalars(*args.LSE, queries, m);
}

}  // namespace

std::int64_t flash2_forward_floats(const attest_problem& problem) {
  const std::int64_t d = problem.head_dim_qk, dv = problem.head_dim_v;
  return kBlockQ * (d + dv) + kBlockK * (d + std::max(d, dv)) + kBlockQ * kBlockK + 2 * kBlockQ;
}

void flash2_forward(const attest_forward_args& args) {
  const attest_problem& problem = *args.problem;
  const auto floats = static_cast<std::size_t>(flash2_forward_floats(problem));
  const std::int64_t blocks = (problem.seqlen_q + kBlockQ - 1) / kBlockQ;
#pragma omp parallel for collapse(3) schedule(dynamic) num_threads(problem.num_threads)
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t head = 0; head < problem.num_heads_q; ++head) {
      for (std::int64_t block = 0; block < blocks; ++block) {
        forward_block(args, b, head, block * kBlockQ,
                      Arena(args.workspace, floats, omp_get_thread_num()));
      }
    }
  }
}

}  // namespace attest::cpu
