#include "schedules/dense/saved_forward.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "cpu/kernels/tiles/tensor_io.hpp"
#include "schedules/engine/operations.hpp"

namespace attest::schedules {

using namespace cpu;  // its arithmetic

SavedForward::SavedForward(const attest_backward_args& args, HeadIndex index, io::SlowGuard guard) {
  const attest_problem& problem = *args.problem;
  const Batch batch = batch_of(problem, index.batch);
  const std::int64_t d = problem.head_dim_qk;
  q_ = batch.q_length;
  k_ = batch.k_length;
  const auto floats = [](std::int64_t count) { return static_cast<std::size_t>(count); };
  std::vector<float> Q(floats(q_ * d)), K(floats(k_ * d)), LSE(floats(q_));
  const RowBlock queries{batch.tensor_batch, batch.q_begin, q_, index.head};
  // The arguments may lie on guarded pages.
  const io::OpenPages open_Q(args.Q->data), open_K(args.K->data), open_LSE(args.LSE->data);
  load_rows(*args.Q, queries, Q.data());
  load_rows(*args.K,
            {batch.tensor_batch, batch.k_begin, k_,
             index.head / (problem.num_heads_q / problem.num_heads_kv)},
            K.data());
  load_scalars(*args.LSE, queries, LSE.data());
  std::vector<float> weights(floats(q_ * k_)), sums(floats(q_)),
      maxima(floats(q_), -std::numeric_limits<float>::infinity());
  const TileView P{weights.data(), q_, k_, k_};
  Product{Form::second_transposed}(P, {Q.data(), q_, d, d}, {K.data(), k_, d, d});
  const ScoreRule rule{&problem, batch, index.head};
  FinishScores{rule, 0, 0}(P);
  for (std::int64_t i = 0; i < q_; ++i) {
    float& maximum = maxima[floats(i)];
    for (std::int64_t j = 0; j < k_; ++j) maximum = std::max(maximum, P.row(i)[j]);
    if (std::isinf(maximum)) continue;
    sums[floats(i)] = static_cast<float>(
        std::exp(static_cast<double>(LSE[floats(i)]) - static_cast<double>(maximum)));
  }
  Probabilities{}(P, {LSE.data(), q_, 1, 1});
  P_.emplace(std::move(weights), guard);
  m_.emplace(std::move(maxima), guard);
  l_.emplace(std::move(sums), guard);
}

void SavedForward::attach(BackwardHead& head) const {
  head.P = {"P", q_, k_, DType::f32, {P_->data(), k_}};
  head.m = {"m", q_, 1, DType::f32, {m_->data(), 1}};
  head.l = {"l", q_, 1, DType::f32, {l_->data(), 1}};
}

}  // namespace attest::schedules
