#pragma once

#include <span>
#include <vector>

#include "core/sparse_operands/sparse_operands.hpp"
#include "sparse/inputs/attention.hpp"
#include "sparse/inputs/words/slow_csr.hpp"

/// Slow memory of the backward pass of sparse attention.
namespace attest::sparse {

/// Matrices that a schedule sees.
struct SlowGradients {
  SlowCsr Q, K, V;
  io::SlowMatrix full;  // (q, 1): 1 for a row whose support is every key, else 0
  io::SlowMatrix O, LSE, dO;
  io::MutableSlowMatrix dQ, dK, dV;
  float scale = 1;
};

/// Owns the operands, what a forward pass stored, dO, and the results.
class GradientStore {
 public:
  /// Requires: valid operands, sizes that match them. Else throws InvalidProblem.
  GradientStore(const SparseOperands& operands, std::span<const float> dO, Outputs stored);

  SlowGradients slow();
  const Gradients& gradients() const { return gradients_; }

 private:
  CsrStore Q_, K_, V_;
  std::vector<float> full_, dO_;
  Outputs stored_;
  Gradients gradients_;
  float scale_;
};

}  // namespace attest::sparse
