#include "cpu/kernels/tiles/score_tile.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "cpu/kernels/vectors/arithmetic.hpp"

namespace attest::cpu {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

void mask_row(const attest_problem& problem, const Batch& batch, const ScoreBlock& block,
              std::int64_t i, float* row) {
  const KeySpan span = visible_keys(problem, batch, i);
  const std::int64_t begin = std::clamp<std::int64_t>(span.begin - block.key, 0, block.keys);
  const std::int64_t end = std::clamp<std::int64_t>(span.end - block.key, begin, block.keys);
  std::fill(row, row + begin, kMasked);
  std::fill(row + end, row + block.keys, kMasked);
  if (problem.mask.per_head != nullptr) {
    for (std::int64_t j = begin; j < end; ++j) {
      if (!shown_to_head(problem, batch, block.head, i, block.key + j)) row[j] = kMasked;
    }
  }
  if (problem.mask.boolean == nullptr) return;
  const std::uint8_t* visible = problem.mask.boolean + i * problem.seqlen_k + block.key;
  for (std::int64_t j = begin; j < end; ++j) {
    if (visible[j] == 0) row[j] = kMasked;
  }
}

}  // namespace

void score_tile(const attest_problem& problem, const Batch& batch, const ScoreBlock& block,
                const float* Q, const float* Kt, float* S, float* slope) {
  const std::int64_t count = block.rows * block.keys, d = problem.head_dim_qk;
  std::fill(S, S + count, 0.0f);
  multiply_add(S, block.keys, {Q, d, 1}, Kt, block.keys, block.rows, block.keys, d);
  finish_scores(problem, batch, block, S, slope);
}

void curve_scores(const attest_problem& problem, std::int64_t count, float* S, float* slope) {
  scale_row(S, count, static_cast<float>(problem.softmax_scale));
  if (!has_slope(problem)) return;
  const auto softcap = static_cast<float>(problem.softcap);
  for (std::int64_t e = 0; e < count; ++e) {
    const float t = std::tanh(S[e] / softcap);
    S[e] = softcap * t;
    if (slope != nullptr) slope[e] = (1.0f - t) * (1.0f + t);
  }
}

void finish_scores(const attest_problem& problem, const Batch& batch, const ScoreBlock& block,
                   float* S, float* slope) {
  curve_scores(problem, block.rows * block.keys, S, slope);
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const std::int64_t i = block.first + r;
    float* row = S + r * block.keys;
    const std::int64_t aligned = i + batch.shift - block.key;
    const auto distance = [aligned](std::int64_t j) { return aligned - j; };
    add_biases(problem, block.head, block.keys, distance, row);
    mask_row(problem, batch, block, i, row);
  }
}

void clear_masked(float* row, std::int64_t keys) {
  for (std::int64_t j = 0; j < keys; ++j) row[j] = row[j] == kMasked ? 0.0f : row[j];
}

void probabilities(const float* LSE, std::int64_t rows, std::int64_t keys, float* S) {
  if (keys == 1) {  // one after the other: all exponentials at once
    exp_differences(S, LSE, rows);
    for (std::int64_t r = 0; r < rows; ++r) S[r] = LSE[r] == kMasked ? 0.0f : S[r];
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    float* row = S + r * keys;
    if (LSE[r] == kMasked) {
      std::fill(row, row + keys, 0.0f);
    } else {
      exp_shifted(row, keys, LSE[r]);
    }
  }
}

void score_gradients(const float* P, const float* slope, const float* delta, std::int64_t rows,
                     std::int64_t keys, float* dP) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t j = 0; j < keys; ++j) {
      const std::int64_t e = r * keys + j;
      dP[e] = P[e] * (dP[e] - delta[r]);
    }
  }
  if (slope == nullptr) return;
  for (std::int64_t e = 0; e < rows * keys; ++e) dP[e] *= slope[e];
}

void row_deltas(const float* dO, const float* O, const float* dLSE, std::int64_t rows,
                std::int64_t columns, float* delta) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float sum = dot(dO + r * columns, O + r * columns, columns);
    delta[r] = dLSE == nullptr ? sum : sum - dLSE[r];
  }
}

}  // namespace attest::cpu
