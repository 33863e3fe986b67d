#pragma once

#include <cstdint>
#include <vector>

#include "cpu/testing/call.hpp"
#include "cpu/testing/naive.hpp"

/// The gradient of the attention loss (Li et al. 2024): a call, and its closed form in float64 with
/// an a-priori bound of float32 errors.
namespace attest::cpu::testing {

/// Axes of a matrix.
std::vector<Axis> matrix_axes(std::int64_t rows, std::int64_t columns);

/// b = heads = 1, n queries and keys, head dimension d.
Problem loss_problem(std::int64_t n, std::int64_t d);

/// Inputs filled with values that depend on the seed only.
struct LossCall {
  Rng layout;
  Strided A1, A2, A3, E, X, Y, dX, dY;
  std::vector<std::byte> workspace;

  LossCall(std::int64_t n, std::int64_t d, std::uint64_t seed, Memory memory, double size);

  /// The arguments without workspace.
  attest_loss_args arguments(const AbiProblem& form) const;
};

struct LossExpected {
  Bounded dX, dY;
};

/// How the scores of the gradient are multiplied out: (A1 X) A2^T or A1 (X A2^T).
enum class ScoreProduct : std::uint8_t { rows_first, keys_first };

LossExpected loss_closed_form(const LossCall& call, std::int64_t n, std::int64_t d,
                              ScoreProduct product = ScoreProduct::rows_first);

}  // namespace attest::cpu::testing
