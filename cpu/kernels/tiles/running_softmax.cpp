#include "cpu/kernels/tiles/running_softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/kernels/vectors/arithmetic.hpp"

namespace attest::cpu {
namespace {

constexpr float kEmpty = -std::numeric_limits<float>::infinity();

float larger(float score, float maximum) { return score > maximum ? score : maximum; }

}  // namespace

void start_rows(std::int64_t rows, float* m, float* l, float sink) {
  std::fill(m, m + rows, sink);
  std::fill(l, l + rows, sink == kEmpty ? 0.0f : 1.0f);
}

void update_rows(std::int64_t rows, std::int64_t keys, std::int64_t columns, float* S, float* m,
                 float* l, float* O) {
  constexpr std::int64_t kChunk = 64;
  float maximum[kChunk], shift[kChunk], rescale[kChunk];
  for (std::int64_t first = 0; first < rows; first += kChunk) {
    const std::int64_t count = std::min(kChunk, rows - first);
    float *scores = S + first * keys, *before = m + first, *sum = l + first;
    for (std::int64_t r = 0; r < count; ++r) {
      maximum[r] = keys == 1 ? larger(scores[r], before[r])
                             : row_maximum(scores + r * keys, keys, before[r]);
      shift[r] = maximum[r] == kEmpty ? 0.0f : maximum[r];  // exp(-inf) = 0, a NaN stays
      rescale[r] = before[r];
    }
    exp_differences(rescale, shift, count);  // the exponentials of all rows at once
    if (keys == 1) {
      exp_differences(scores, shift, count);
    } else {
      for (std::int64_t r = 0; r < count; ++r) exp_shifted(scores + r * keys, keys, shift[r]);
    }
    for (std::int64_t r = 0; r < count; ++r) {
      if (maximum[r] > before[r]) {
        sum[r] *= rescale[r];
        scale_row(O + (first + r) * columns, columns, rescale[r]);
        before[r] = maximum[r];
      }
      sum[r] += keys == 1 ? scores[r] : row_sum(scores + r * keys, keys);
    }
  }
}

void finish_rows(std::int64_t rows, std::int64_t columns, float* m, const float* l, float* O) {
  for (std::int64_t r = 0; r < rows; ++r) {
    if (l[r] != 0) scale_row(O + r * columns, columns, 1.0f / l[r]);
    m[r] += std::log(l[r]);  // -inf without a visible key
  }
}

}  // namespace attest::cpu
