#include "gpu/device/measure/counted_run.hpp"

#include <array>
#include <cstring>

#include "core/error.hpp"
#include "gpu/device/buffer.hpp"
#include "gpu/device/device_side.hpp"
#include "gpu/device/probe.hpp"
#include "gpu/device/staged_kernel.hpp"
#include "gpu/kernels/emulated/families.hpp"

namespace attest::gpu::cuda {
namespace {

template <class Args, class Call>
simt::GlobalTraffic count(const std::string& kernel, const Args& args, Call attest_kernel::*call) {
  std::array<unsigned long long, 2> bytes{};
  const Buffer sink("traffic", sizeof bytes);
  sink.upload(bytes.data());
  const DeviceSide side(kernel_named(kernel), static_cast<TrafficSink>(sink.data()));
  const StagedKernel staged(side.abi(), device().name);
  const attest_status status = (staged.kernel().*call)(staged.kernel().self, &args);
  if (const std::optional<Finding> finding = take_finding()) throw InvalidProblem(finding->text);
  if (status != ATTEST_OK) {
    throw InvalidProblem(kernel + ": no launch takes this problem");
  }
  std::memcpy(bytes.data(), sink.download().data(), sizeof bytes);
  return {static_cast<std::int64_t>(bytes[0]), static_cast<std::int64_t>(bytes[1])};
}

}  // namespace

const EmulatedKernel& kernel_named(const std::string& name) {
  for (const EmulatedKernel* kernel : emulated_kernels()) {
    if (kernel->description().name == name) return *kernel;
  }
  for (const Family& family : families()) {
    for (const Variant& variant : family.variants) {
      if (variant.kernel->description().name == name) return *variant.kernel;
    }
  }
  throw InvalidProblem(name + ": no kernel has this name; attest_gpu_measure kernels lists them");
}

simt::GlobalTraffic counted(const std::string& kernel, const attest_forward_args& args) {
  return count(kernel, args, &attest_kernel::forward);
}

simt::GlobalTraffic counted(const std::string& kernel, const attest_backward_args& args) {
  return count(kernel, args, &attest_kernel::backward);
}

simt::GlobalTraffic counted(const std::string& kernel, const attest_loss_args& args) {
  return count(kernel, args, &attest_kernel::loss_gradient);
}

}  // namespace attest::gpu::cuda
