#include "python/api/testing/example.hpp"

#include <cstdint>

#include "reference/exact/attention.hpp"

namespace attest::python {
namespace {

Tensor rounded(const Tensor& exact, DType dtype) {
  std::vector<Axis> axes;
  for (std::size_t axis = 0; axis < exact.view().rank(); ++axis) {
    axes.push_back(exact.view().axis(axis));
  }
  Tensor copy(exact.view().name(), dtype, axes);
  const auto extent = [&](std::size_t axis) { return axis < axes.size() ? axes[axis].extent : 1; };
  for (std::int64_t i = 0; i < extent(0); ++i) {
    for (std::int64_t j = 0; j < extent(1); ++j) {
      for (std::int64_t k = 0; k < extent(2); ++k) {
        for (std::int64_t l = 0; l < extent(3); ++l) copy.set(exact(i, j, k, l), i, j, k, l);
      }
    }
  }
  return copy;
}

}  // namespace

Example::Example(const std::string& spelling, Direction direction, proptest::Values family)
    : problem(Problem::parse(spelling)), spelling_(spelling), direction_(direction) {
  const proptest::InputValues values = proptest::make_values(problem, family, 1);
  const DType dtype = problem.dtype, scalar = dtype == DType::f64 ? DType::f64 : DType::f32;
  Q = rounded(values.Q, dtype);
  K = rounded(values.K, dtype);
  V = rounded(values.V, dtype);
  dO = rounded(values.dO, dtype);
  dLSE = rounded(values.dLSE, scalar);
  const auto forward =
      reference::forward(problem, {}, values.Q.view(), values.K.view(), values.V.view());
  O = rounded(forward.O, dtype);
  LSE = rounded(forward.LSE, scalar);
  if (direction == Direction::forward) return;
  const auto backward = reference::backward(problem, values.Q.view(), values.K.view(),
                                            values.V.view(), {values.dO.view()});
  dQ = rounded(backward.dQ, dtype);
  dK = rounded(backward.dK, dtype);
  dV = rounded(backward.dV, dtype);
  dSinks = rounded(backward.dSinks, scalar);
  dBias = rounded(backward.dBias, problem.bias_dtype());
}

const attest_tensor* Example::abi(const Tensor& tensor) {
  tensors_.push_back(std::make_unique<AbiTensor>(tensor.view()));
  return tensors_.back()->get();
}

attest_attention& Example::call() {
  tensors_.clear();
  call_ = {};
  call_.struct_size = sizeof call_;
  call_.problem = spelling_.c_str();
  call_.Q = abi(Q);
  call_.K = abi(K);
  call_.V = abi(V);
  call_.got.O = abi(O);
  call_.got.LSE = abi(LSE);
  if (direction_ == Direction::forward) return call_;
  call_.dO = abi(dO);
  call_.got.dQ = abi(dQ);
  call_.got.dK = abi(dK);
  call_.got.dV = abi(dV);
  if (problem.sinks != Sinks::none) call_.got.dSinks = abi(dSinks);
  if (problem.bias.kind != Bias::Kind::none) call_.got.dBias = abi(dBias);
  return call_;
}

}  // namespace attest::python
