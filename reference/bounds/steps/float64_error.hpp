#pragma once

#include <cstdint>

#include "reference/exact/oracle.hpp"

/// How far the float64 reference may lie from exact results, element by element, before it has been
/// run: standard rounding-error analysis evaluated in 256-bit arithmetic on the actual inputs.
/// Shares nothing with reference/bounds/bounds.hpp. Derivation: docs/theory/reference.md.
namespace attest::reference::oracle {

/// `actual`: proved, every sum of n terms errs by gamma(n) of its magnitudes. `one`: every sum as
/// if it had one term, so that the error is 2^-53 times the condition of the result: the unit in
/// which measured errors are printed.
enum class Chains : std::uint8_t { actual, one };

struct AttentionError {
  Array O, LSE, dQ, dK, dV, dSinks, dBias;  // LSE in base e
};

/// |computed - exact| of every element of `forward` and `backward`. Requires finite inputs, no
/// overflow in float64, and exp and log within 1 ulp, tanh within 2 ulps.
/// [reference/exact/oracle_test "reference against 256-bit arithmetic"]
AttentionError float64_error(const Problem& problem, const Array& Q, const Array& K, const Array& V,
                             const Array& dO, const Array& dLSE, Chains chains);

struct LossError {
  Real loss;
  Array dX, dY;
};

/// The same for `loss_gradient`.  [reference/exact/loss_gradient_test]
LossError loss_float64_error(const Array& A1, const Array& A2, const Array& A3, const Array& E,
                             const Array& X, const Array& Y, std::int64_t seqlen,
                             std::int64_t head_dim, Chains chains);

}  // namespace attest::reference::oracle
