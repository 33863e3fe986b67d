#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "core/tensor.hpp"
#include "proptest/judge/claims.hpp"
#include "proptest/values/values.hpp"
#include "python/api/attest_api.h"

/// A call with right results, for tests to spoil.
namespace attest::python {

/// Exact results rounded to their dtypes, and a call that judges them.
class Example {
 public:
  /// Gradients are judged too with `direction` backward.
  explicit Example(const std::string& problem, Direction direction = Direction::forward,
                   proptest::Values values = proptest::Values::normal);

  Problem problem;
  Tensor Q, K, V, dO, dLSE, O, LSE, dQ, dK, dV, dSinks, dBias;

  /// The call, as the tensors now are. Stays valid until the next.
  attest_attention& call();

 private:
  const attest_tensor* abi(const Tensor& tensor);

  std::string spelling_;
  Direction direction_;
  std::vector<std::unique_ptr<AbiTensor>> tensors_;
  attest_attention call_{};
};

}  // namespace attest::python
