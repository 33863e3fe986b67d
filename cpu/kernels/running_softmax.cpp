#include "cpu/kernels/running_softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/kernels/arithmetic.hpp"
#include "cpu/kernels/score_tile.hpp"

namespace attest::cpu {
namespace {

constexpr float kEmpty = -std::numeric_limits<float>::infinity();

}  // namespace

void start_rows(std::int64_t rows, float* m, float* l) {
  std::fill(m, m + rows, kEmpty);
  std::fill(l, l + rows, 0.0f);
}

void update_rows(std::int64_t rows, std::int64_t keys, std::int64_t columns, float* S, float* m,
                 float* l, float* O) {
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
