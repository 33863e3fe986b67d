#include "gpu/device/testing/device_call.hpp"

#include "core/error.hpp"
#include "gpu/device/device_side.hpp"
#include "gpu/device/measure/counted_run.hpp"

namespace attest::gpu::cuda {

DeviceCall::DeviceCall(const std::string& kernel, const std::string& problem)
    : kernel_(kernel_named(kernel)),
      side_(std::make_unique<const DeviceSide>(kernel_)),
      call_(gpu::testing::spelled_for(kernel_.abi(), problem.c_str()),
            kernel_.description().features),
      loss_call_(gpu::testing::loss_problem(call_.problem.seqlen_q, call_.problem.head_dim_qk)) {
  if ((directions() & ATTEST_LOSS_GRADIENT) != 0) {
    stage_loss();
  } else {
    stage_attention();
  }
  staging_.fill(nullptr);
}

DeviceCall::~DeviceCall() = default;

std::uint32_t DeviceCall::directions() const { return kernel_.description().directions; }

const attest_tensor* DeviceCall::input(const char* name, const attest_tensor* tensor) {
  return staging_.tensor(name, tensor, Staging::Use::input);
}

const attest_tensor* DeviceCall::output(const char* name, const attest_tensor* tensor) {
  return staging_.tensor(name, tensor, Staging::Use::output);
}

void DeviceCall::stage_attention() {
  forward_ = call_.forward_arguments(kernel_.abi());
  forward_.problem = staging_.problem(*forward_.problem);
  forward_.Q = input("Q", forward_.Q);
  forward_.K = input("K", forward_.K);
  forward_.V = input("V", forward_.V);
  forward_.O = output("O", forward_.O);
  forward_.LSE = output("LSE", forward_.LSE);
  forward_.workspace = staging_.workspace(forward_.workspace_bytes);
  if ((directions() & ATTEST_BACKWARD) == 0) return;
  backward_ = call_.backward_arguments(kernel_.abi());
  backward_.problem = forward_.problem;
  backward_.Q = forward_.Q;
  backward_.K = forward_.K;
  backward_.V = forward_.V;
  backward_.O = forward_.O;
  backward_.LSE = forward_.LSE;
  backward_.dO = input("dO", backward_.dO);
  backward_.dLSE = input("dLSE", backward_.dLSE);
  backward_.dQ = output("dQ", backward_.dQ);
  backward_.dK = output("dK", backward_.dK);
  backward_.dV = output("dV", backward_.dV);
  backward_.workspace = staging_.workspace(backward_.workspace_bytes);
}

void DeviceCall::stage_loss() {
  loss_ = loss_call_.arguments(kernel_.abi());
  loss_.problem = staging_.problem(*loss_.problem);
  loss_.A1 = input("A1", loss_.A1);
  loss_.A2 = input("A2", loss_.A2);
  loss_.A3 = input("A3", loss_.A3);
  loss_.E = input("E", loss_.E);
  loss_.X = input("X", loss_.X);
  loss_.Y = input("Y", loss_.Y);
  loss_.dX = output("dX", loss_.dX);
  loss_.dY = output("dY", loss_.dY);
  loss_.workspace = staging_.workspace(loss_.workspace_bytes);
}

void DeviceCall::run(std::uint32_t direction) {
  const attest_kernel& kernel = side_->abi();
  const attest_status status = direction == ATTEST_FORWARD ? kernel.forward(kernel.self, &forward_)
                               : direction == ATTEST_BACKWARD
                                   ? kernel.backward(kernel.self, &backward_)
                                   : kernel.loss_gradient(kernel.self, &loss_);
  if (status != ATTEST_OK) {
    throw InvalidProblem(std::string(kernel_.description().name) +
                         ": no launch takes this problem");
  }
}

// Forward Q K^T and P V; backward Q K^T, dO V^T, P^T dO, dS K and dS^T Q.
double DeviceCall::operations(std::uint32_t direction) const {
  const Problem& p = call_.problem;
  const std::int64_t columns = direction == ATTEST_FORWARD ? p.head_dim_qk + p.head_dim_v
                                                           : 3 * p.head_dim_qk + 2 * p.head_dim_v;
  return 2.0 * static_cast<double>(p.visible_pairs() * p.num_heads_q) *
         static_cast<double>(columns);
}

}  // namespace attest::gpu::cuda
