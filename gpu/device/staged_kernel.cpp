#include "gpu/device/staged_kernel.hpp"

#include <cuda_runtime_api.h>

#include <array>
#include <utility>
#include <vector>

#include "core/workspace.hpp"
#include "gpu/device/kernels/require.cuh"
#include "gpu/device/staging.hpp"

namespace attest::gpu::cuda {
namespace {

using Use = Staging::Use;

thread_local std::optional<Finding> finding;

// Does not wait for the default stream, as the streams of programs that use several do not.
class Stream {
 public:
  Stream() { require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"); }
  ~Stream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  void* get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

void* next_stream() {
  static thread_local const std::array<Stream, 2> streams;
  static thread_local unsigned calls = 0;
  return streams[calls++ % 2].get();
}

}  // namespace

struct StagedKernel::State {
  const attest_kernel* inner;
  std::string summary;
};

namespace {

using State = StagedKernel::State;

const State& state_of(const void* self) { return *static_cast<const State*>(self); }

template <class Arguments>
struct Operand {
  const char* name;
  const attest_tensor* Arguments::*tensor;
  Use use;
};

// Operands that forward and backward have in common; one makes O and LSE, the other takes them.
template <class Arguments>
std::vector<Operand<Arguments>> attention_operands(Use results) {
  return {{"Q", &Arguments::Q, Use::input},  {"K", &Arguments::K, Use::input},
          {"V", &Arguments::V, Use::input},  {"O", &Arguments::O, results},
          {"LSE", &Arguments::LSE, results}, {"bias", &Arguments::bias, Use::input}};
}

std::vector<Operand<attest_forward_args>> operands_of(const attest_forward_args&) {
  return attention_operands<attest_forward_args>(Use::output);
}

std::vector<Operand<attest_backward_args>> operands_of(const attest_backward_args&) {
  using Arguments = attest_backward_args;
  std::vector<Operand<Arguments>> all = attention_operands<Arguments>(Use::input);
  all.insert(all.end(), {{"dO", &Arguments::dO, Use::input},
                         {"dLSE", &Arguments::dLSE, Use::input},
                         {"dQ", &Arguments::dQ, Use::output},
                         {"dK", &Arguments::dK, Use::output},
                         {"dV", &Arguments::dV, Use::output},
                         {"dSinks", &Arguments::dSinks, Use::output},
                         {"dBias", &Arguments::dBias, Use::output}});
  return all;
}

std::vector<Operand<attest_loss_args>> operands_of(const attest_loss_args&) {
  using Arguments = attest_loss_args;
  return {{"A1", &Arguments::A1, Use::input},  {"A2", &Arguments::A2, Use::input},
          {"A3", &Arguments::A3, Use::input},  {"E", &Arguments::E, Use::input},
          {"X", &Arguments::X, Use::input},    {"Y", &Arguments::Y, Use::input},
          {"dX", &Arguments::dX, Use::output}, {"dY", &Arguments::dY, Use::output}};
}

// kCall of the kernel with its tensors on the device.
template <auto kCall, std::uint32_t kDirection, class Arguments>
attest_status run(const void* self, const Arguments* host) {
  const State& state = state_of(self);
  finding.reset();
  try {
    Staging staging;
    Arguments arguments = *host;
    arguments.problem = staging.problem(*host->problem);
    for (const Operand<Arguments>& operand : operands_of(*host)) {
      const attest_tensor*& tensor = arguments.*operand.tensor;
      tensor = staging.tensor(operand.name, tensor, operand.use);
    }
    if (staging.too_large()) return ATTEST_UNSUPPORTED;
    arguments.workspace_bytes = workspace_bytes_of(*state.inner, *host->problem, kDirection);
    arguments.workspace = staging.workspace(arguments.workspace_bytes);
    arguments.stream = next_stream();
    staging.fill(arguments.stream);
    const attest_status status = (state.inner->*kCall)(state.inner->self, &arguments);
    require(cudaGetLastError(), "launch");
    finding = staging.finish(arguments.stream);
    if (!finding) return status;
  } catch (const DeviceError& error) {
    finding = Finding{Finding::Kind::device_failed, error.what()};
  }
  return ATTEST_FAILED;
}

}  // namespace

std::optional<Finding> take_finding() { return std::exchange(finding, std::nullopt); }

StagedKernel::StagedKernel(const attest_kernel& inner, const std::string& device_name)
    : state_(std::make_unique<State>()), kernel_(inner) {
  const char* summary = inner.description.summary;
  state_->inner = &inner;
  state_->summary = "on device " + device_name + ": " + (summary == nullptr ? "" : summary);
  kernel_.description.summary = state_->summary.c_str();
  kernel_.self = state_.get();
  kernel_.workspace_bytes = nullptr;  // it is on the device
  if (inner.forward != nullptr) kernel_.forward = run<&attest_kernel::forward, ATTEST_FORWARD>;
  if (inner.backward != nullptr) kernel_.backward = run<&attest_kernel::backward, ATTEST_BACKWARD>;
  if (inner.loss_gradient != nullptr)
    kernel_.loss_gradient = run<&attest_kernel::loss_gradient, ATTEST_LOSS_GRADIENT>;
}

StagedKernel::~StagedKernel() = default;

}  // namespace attest::gpu::cuda
