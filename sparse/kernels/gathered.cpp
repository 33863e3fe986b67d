#include "sparse/kernels/gathered.hpp"

#include <cmath>
#include <cstdlib>

#include "cpu/kernels/arithmetic.hpp"
#include "cpu/kernels/score_tile.hpp"

namespace attest::sparse {

void dot_each(const float* row, const SequenceRows& rows, const Gathered& gathered, float* x) {
  for (std::int64_t n = 0; n < gathered.count; ++n) {
    x[n] = cpu::dot(row, rows[gathered[n]], rows.columns);
  }
}

void add_each(float* sum, const float* weights, const SequenceRows& rows,
              const Gathered& gathered) {
  const std::int64_t columns = rows.columns;
  for (std::int64_t n = 0; n < gathered.count; ++n) {
    cpu::multiply_add(sum, columns, {weights + n, 1, 1}, rows[gathered[n]], columns, 1, columns, 1);
  }
}

void finish_scores(const attest_problem& problem, std::int64_t head, std::int64_t offset,
                   const Gathered& gathered, float* x, float* slope) {
  cpu::scale_row(x, gathered.count, static_cast<float>(problem.softmax_scale));
  if (problem.softcap > 0) {
    cpu::apply_softcap(static_cast<float>(problem.softcap), gathered.count, x, slope);
  }
  if (problem.alibi_slopes == nullptr) return;
  const float alibi = problem.alibi_slopes[head];
  for (std::int64_t n = 0; n < gathered.count; ++n) {
    x[n] -= alibi * static_cast<float>(std::abs(offset - gathered[n]));
  }
}

}  // namespace attest::sparse
