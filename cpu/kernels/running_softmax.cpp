#include "cpu/kernels/running_softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/kernels/arithmetic.hpp"
#include "cpu/kernels/score_tile.hpp"

namespace attest::cpu {
namespace {

constexpr float kEmpty = -std::numeric_limits<float>::infinity();

// update_rows for one key, whose scores lie one after the other: all exponentials at once.
void update_single_key(std::int64_t rows, std::int64_t columns, float* S, float* m, float* l,
                       float* O) {
  constexpr std::int64_t kChunk = 64;
  float maximum[kChunk], shift[kChunk], rescale[kChunk];
  for (std::int64_t first = 0; first < rows; first += kChunk) {
    const std::int64_t count = std::min(kChunk, rows - first);
    float *score = S + first, *before = m + first, *sum = l + first;
    for (std::int64_t r = 0; r < count; ++r) {
      maximum[r] = score[r] > before[r] ? score[r] : before[r];
      shift[r] = maximum[r] == kEmpty ? 0.0f : maximum[r];  // exp(-inf) = 0, a NaN stays
      rescale[r] = before[r];
    }
    exp_differences(score, shift, count);
    exp_differences(rescale, shift, count);
    for (std::int64_t r = 0; r < count; ++r) {
      if (maximum[r] > before[r]) {
        sum[r] *= rescale[r];
        scale_row(O + (first + r) * columns, columns, rescale[r]);
        before[r] = maximum[r];
      }
      sum[r] += score[r];
    }
  }
}

}  // namespace

void start_rows(std::int64_t rows, float* m, float* l) {
  std::fill(m, m + rows, kEmpty);
  std::fill(l, l + rows, 0.0f);
}

void update_rows(std::int64_t rows, std::int64_t keys, std::int64_t columns, float* S, float* m,
                 float* l, float* O) {
  if (keys == 1) return update_single_key(rows, columns, S, m, l, O);
  for (std::int64_t r = 0; r < rows; ++r) {
    float* row = S + r * keys;
    const float maximum = row_maximum(row, keys, m[r]);
    if (maximum == kEmpty) {
      clear_masked(row, keys);
      l[r] += row_sum(row, keys);
      continue;
    }
    exp_shifted(row, keys, maximum);
    const float sum = row_sum(row, keys);
    if (maximum > m[r]) {
      float rescale = m[r];
      exp_shifted(&rescale, 1, maximum);
      l[r] *= rescale;
      scale_row(O + r * columns, columns, rescale);
      m[r] = maximum;
    }
    l[r] += sum;
  }
}

void finish_rows(std::int64_t rows, std::int64_t columns, float* m, const float* l, float* O) {
  for (std::int64_t r = 0; r < rows; ++r) {
    if (l[r] != 0) scale_row(O + r * columns, columns, 1.0f / l[r]);
    m[r] += std::log(l[r]);  // -inf without a visible key
  }
}

}  // namespace attest::cpu
