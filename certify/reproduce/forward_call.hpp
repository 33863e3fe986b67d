#pragma once

#include <functional>

#include "core/problem.hpp"
#include "core/tensor.hpp"

namespace attest::certify {

/// Packed float32 tensors of a forward call and its arguments.
class ForwardCall {
 public:
  /// An input's element at (batch, row, head, column).
  using Value = std::function<double(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>;

  ForwardCall(const Problem& problem, std::int32_t threads, const Value& q, const Value& k,
              const Value& v);
  ForwardCall(const ForwardCall&) = delete;
  ForwardCall& operator=(const ForwardCall&) = delete;

  const attest_problem& problem() const { return *form_.get(); }
  const attest_forward_args& args() const { return args_; }
  const Tensor& O() const { return o_; }

 private:
  AbiProblem form_;
  Tensor q_, k_, v_, o_, lse_;
  AbiTensor abi_q_, abi_k_, abi_v_, abi_o_, abi_lse_;
  attest_forward_args args_{};
};

}  // namespace attest::certify
