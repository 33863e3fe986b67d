#include "certify/reproduce/forward_call.hpp"

namespace attest::certify {
namespace {

Tensor filled(const char* name, const std::vector<Axis>& axes, const ForwardCall::Value& value) {
  Tensor tensor(name, DType::f32, axes);
  const TensorView& view = tensor.view();
  for (std::int64_t b = 0; b < view.extent(0); ++b) {
    for (std::int64_t s = 0; s < view.extent(1); ++s) {
      for (std::int64_t h = 0; h < view.extent(2); ++h) {
        for (std::int64_t c = 0; c < view.extent(3); ++c) {
          tensor.set(value(b, s, h, c), b, s, h, c);
        }
      }
    }
  }
  return tensor;
}

}  // namespace

ForwardCall::ForwardCall(const Problem& problem, std::int32_t threads, const Value& q,
                         const Value& k, const Value& v)
    : form_(problem, threads),
      q_(filled("Q", problem.q_axes(), q)),
      k_(filled("K", problem.k_axes(), k)),
      v_(filled("V", problem.v_axes(), v)),
      o_("O", DType::f32, problem.o_axes()),
      lse_("LSE", DType::f32, problem.lse_axes()),
      abi_q_(q_.view()),
      abi_k_(k_.view()),
      abi_v_(v_.view()),
      abi_o_(o_.view()),
      abi_lse_(lse_.view()) {
  args_.struct_size = sizeof args_;
  args_.problem = form_.get();
  args_.Q = abi_q_.get();
  args_.K = abi_k_.get();
  args_.V = abi_v_.get();
  args_.O = abi_o_.get();
  args_.LSE = abi_lse_.get();
}

}  // namespace attest::certify
