#include "gpu/device/testing/device_call.hpp"

#include "core/error.hpp"
#include "gpu/device/device_side.hpp"
#include "gpu/kernels/flash2.hpp"

namespace attest::gpu::cuda {
namespace {

void require_taken(attest_status status) {
  if (status != ATTEST_OK) throw InvalidProblem("gpu/flash2: no launch takes this problem");
}

}  // namespace

DeviceCall::DeviceCall(const std::string& problem)
    : side_(std::make_unique<const DeviceSide>(flash2_kernel())),
      call_(problem),
      forward_(call_.forward_arguments()),
      backward_(call_.backward_arguments()) {
  using Use = Staging::Use;
  const auto input = [&](const char* name, const attest_tensor* tensor) {
    return staging_.tensor(name, tensor, Use::input);
  };
  const auto output = [&](const char* name, const attest_tensor* tensor) {
    return staging_.tensor(name, tensor, Use::output);
  };
  forward_.problem = backward_.problem = staging_.problem(*forward_.problem);
  forward_.Q = backward_.Q = input("Q", forward_.Q);
  forward_.K = backward_.K = input("K", forward_.K);
  forward_.V = backward_.V = input("V", forward_.V);
  forward_.O = backward_.O = output("O", forward_.O);
  forward_.LSE = backward_.LSE = output("LSE", forward_.LSE);
  backward_.dO = input("dO", backward_.dO);
  backward_.dLSE = input("dLSE", backward_.dLSE);
  backward_.dQ = output("dQ", backward_.dQ);
  backward_.dK = output("dK", backward_.dK);
  backward_.dV = output("dV", backward_.dV);
  backward_.workspace = staging_.workspace(backward_.workspace_bytes);
  staging_.fill(nullptr);
}

DeviceCall::~DeviceCall() = default;

void DeviceCall::forward() { require_taken(side_->abi().forward(side_->abi().self, &forward_)); }
void DeviceCall::backward() { require_taken(side_->abi().backward(side_->abi().self, &backward_)); }

// Q K^T and P V.
double DeviceCall::forward_operations() const {
  const Problem& p = call_.problem;
  return 2.0 * static_cast<double>(p.visible_pairs() * p.num_heads_q) *
         static_cast<double>(p.head_dim_qk + p.head_dim_v);
}

// Q K^T, dO V^T, P^T dO, dS K and dS^T Q.
double DeviceCall::backward_operations() const {
  const Problem& p = call_.problem;
  return 2.0 * static_cast<double>(p.visible_pairs() * p.num_heads_q) *
         static_cast<double>(3 * p.head_dim_qk + 2 * p.head_dim_v);
}

}  // namespace attest::gpu::cuda
