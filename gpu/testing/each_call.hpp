#pragma once

#include <string>

#include "gpu/kernels/emulated/emulated_kernel.hpp"
#include "gpu/testing/call.hpp"

namespace attest::gpu::testing {

/// does("forward", "backward" or "loss_gradient", arguments, emulated direction, emulated call) for
/// each direction that takes the problem, in a type that the kernel takes; forward first, for
/// backward reads what it stored.  [gpu/kernels/device_record_test]
template <class Does>
void for_each_call(const EmulatedKernel& kernel, const std::string& problem, const Does& does) {
  const attest_kernel& abi = kernel.abi();
  const EmulatedDirections& directions = kernel.directions();
  const std::string spelled = spelled_for(abi, problem.c_str());
  Call call(spelled, kernel.description().features);
  const auto one = [&](const auto& direction, const auto& args, auto make, const char* name) {
    if (!kernel.accepts(args)) return false;
    auto emulated = make(args);
    does(name, args, direction, emulated);
    return true;
  };
  if (directions.forward.exists() &&
      !one(
          directions.forward, call.forward_arguments(abi),
          [](const auto& args) { return EmulatedForward(args); }, "forward")) {
    return;
  }
  if (directions.backward.exists()) {
    one(
        directions.backward, call.backward_arguments(abi),
        [](const auto& args) { return EmulatedBackward(args); }, "backward");
  }
  if (directions.loss_gradient.exists()) {
    LossCall loss(loss_problem(call.problem.seqlen_q, call.problem.head_dim_qk));
    one(
        directions.loss_gradient, loss.arguments(abi),
        [](const auto& args) { return EmulatedLoss(args); }, "loss_gradient");
  }
}

}  // namespace attest::gpu::testing
