#include "gpu/device/counted_run.hpp"

#include <array>
#include <cstring>

#include "core/error.hpp"
#include "gpu/device/buffer.hpp"
#include "gpu/device/kernels.hpp"
#include "gpu/device/probe.hpp"
#include "gpu/device/staged_kernel.hpp"
#include "gpu/kernels/flash2.hpp"

namespace attest::gpu::cuda {
namespace {

// The sink of the kernel's calls is its self.
attest_kernel counting_kernel(TrafficSink sink) {
  attest_kernel kernel = flash2_kernel().abi();
  kernel.description.device = ATTEST_CUDA;
  kernel.self = sink;
  kernel.forward = [](const void* self, const attest_forward_args* args) {
    return flash2_forward(*args, static_cast<TrafficSink>(const_cast<void*>(self)));
  };
  kernel.backward = [](const void* self, const attest_backward_args* args) {
    return two_pass_backward(*args, static_cast<TrafficSink>(const_cast<void*>(self)));
  };
  return kernel;
}

template <class Call>
simt::GlobalTraffic count(const Call& call) {
  std::array<unsigned long long, 2> bytes{};
  const Buffer sink("traffic", sizeof bytes);
  sink.upload(bytes.data());
  const attest_kernel inner = counting_kernel(static_cast<TrafficSink>(sink.data()));
  const StagedKernel staged(inner, device().name);
  const attest_status status = call(staged.kernel());
  if (const std::optional<Finding> finding = take_finding()) throw InvalidProblem(finding->text);
  if (status != ATTEST_OK) throw InvalidProblem("gpu/flash2: no launch takes this problem");
  std::memcpy(bytes.data(), sink.download().data(), sizeof bytes);
  return {static_cast<std::int64_t>(bytes[0]), static_cast<std::int64_t>(bytes[1])};
}

}  // namespace

simt::GlobalTraffic counted_forward(const attest_forward_args& args) {
  return count([&](const attest_kernel& kernel) { return kernel.forward(kernel.self, &args); });
}

simt::GlobalTraffic counted_backward(const attest_backward_args& args) {
  return count([&](const attest_kernel& kernel) { return kernel.backward(kernel.self, &args); });
}

}  // namespace attest::gpu::cuda
