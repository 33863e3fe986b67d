#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "core/tensor.hpp"

/// The definition of attention, element by element in float64, with an a-priori bound of what plain
/// float32 arithmetic may do to each result. For small problems in the tests of this room; its
/// bounds are simpler and wider than those of reference/.
namespace attest::cpu::testing {

/// A result and the bound of its error, both f64.
struct Bounded {
  Tensor value, bound;
};

struct NaiveForward {
  Bounded O, LSE;
};

struct NaiveBackward {
  Bounded dQ, dK, dV;
};

/// The values in the logical axis order of core/problem.hpp; dLSE may be empty (rank 0).
struct NaiveInputs {
  TensorView Q, K, V, dO, dLSE;
};

/// Rounding of every float32 operation to nearest, an exponential within 2 ulp (a relative error of
/// 2^-22) that may flush below 2^-126, hyperbolic tangent within 4 ulp; sums of n terms in any
/// order are within gamma(n) of the sum of absolute values (Higham 2002, chapters 3 and 4).
NaiveForward naive_forward(const Problem& problem, const NaiveInputs& inputs);

/// How a backward pass gets delta(i): sum_c dO(i, c) O(i, c), or sum_j P(i, j) dP(i, j).
enum class Deltas : std::uint8_t { from_outputs, from_probabilities };

/// Gradients given O and LSE as a forward pass stored them.
NaiveBackward naive_backward(const Problem& problem, const NaiveInputs& inputs, const TensorView& O,
                             const TensorView& LSE, Deltas deltas = Deltas::from_outputs);

}  // namespace attest::cpu::testing
