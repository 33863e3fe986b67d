#pragma once

#include <optional>
#include <string>

#include "core/numerics.hpp"
#include "reference/exact/attention.hpp"

/// Error bounds per element, derived from the actual inputs and the declared precision contract.
/// Derivations and validation: docs/theory/error-bounds/README.md.
namespace attest::reference {

/// Bounds of one output, f64 tensors shaped like it.
struct ErrorBound {
  Tensor deterministic;  // Bd: proved, every contract-abiding kernel is within
  Tensor probabilistic;  // Bp <= Bd: exceeded with probability below 1e-12 over 2.6e9 elements
  Tensor sigma;          // scale of the typical error; the aggregate is rms(error / sigma)
};

/// Adds a bound of another error of the same tensor; typical errors add as independent ones do.
/// [proptest/suites/false_alarms_test "the reference's own error in float64"]
void widen(ErrorBound& bound, const ErrorBound& by);

struct ForwardBounds {
  ErrorBound O, LSE;
};

struct BackwardBounds {
  ErrorBound dQ, dK, dV;
  ErrorBound dSinks;  // of no element without sinks
  ErrorBound dBias;   // as Backward's; without a sample alone
};

/// Tensors that a kernel's forward pass stored and its backward pass was given. An LSE that nobody
/// saw may be any within forward's bound.  [reference/bounds/shared_errors_test "that nobody saw"]
struct Stored {
  TensorView O;
  std::optional<TensorView> LSE;
};

/// "" when the bounds of attention cover the contract, else why not: sums kept in bf16 or f16 lose
/// what no term of the bounds counts.  [proptest/suites/declarations_test]
std::string uncovered_by_attention_bounds(const Numerics& numerics);

/// Shapes as `forward`; `exact` is its result on the same inputs and conventions. With `queries`
/// (not null) the bounds of those rows alone, as they are without; the others are 0.
/// [reference/exact/sample_test "bounds of a sample"]
/// Requires: a covered contract. Else throws InvalidProblem.
ForwardBounds forward_bounds(const Problem& problem, const Conventions& conventions,
                             const Numerics& numerics, const TensorView& Q, const TensorView& K,
                             const TensorView& V, const Forward& exact,
                             const PositionsInSequences* queries = nullptr);

/// `exact_forward` in base e with EmptyRow::zero_neg_inf, `exact_backward` of the same inputs;
/// `stored` in `conventions`; all of them whole. With a sample (not null) the bounds of its rows of
/// dQ and of its keys of dK and dV alone, never above those without; the others are 0.
/// [reference/exact/sample_test "bounds of a sample"]
/// Requires: a covered contract. Else throws InvalidProblem.
/// Cost: without LSE forward's bounds too.
BackwardBounds backward_bounds(const Problem& problem, const Conventions& conventions,
                               const Numerics& numerics, const TensorView& Q, const TensorView& K,
                               const TensorView& V, const Cotangents& cotangents,
                               const Stored& stored, const Forward& exact_forward,
                               const Backward& exact_backward, const Sample* sample = nullptr);

}  // namespace attest::reference
