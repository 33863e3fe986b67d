#include "sparse/kernels/gathered.hpp"

#include "cpu/kernels/tiles/score_tile.hpp"
#include "cpu/kernels/vectors/arithmetic.hpp"

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
  cpu::curve_scores(problem, gathered.count, x, slope);
  const auto distance = [&](std::int64_t n) { return offset - gathered[n]; };
  cpu::add_biases(problem, head, gathered.count, distance, x);
}

}  // namespace attest::sparse
