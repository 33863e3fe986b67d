#include "gpu/device/staged_kernel.hpp"

#include <cuda_runtime_api.h>

#include <array>
#include <utility>

#include "gpu/device/require.cuh"
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

  std::size_t workspace_bytes(const attest_problem& problem, std::uint32_t direction) const {
    if (inner->workspace_bytes == nullptr) return 0;
    return inner->workspace_bytes(inner->self, &problem, direction);
  }
};

namespace {

using State = StagedKernel::State;

const State& state_of(const void* self) { return *static_cast<const State*>(self); }

// `place` puts the tensors of the arguments on the device, `call` calls the kernel with them.
template <class Arguments, class Place, class Call>
attest_status run(const State& state, const Arguments& host, std::uint32_t direction,
                  const Place& place, const Call& call) {
  finding.reset();
  try {
    Staging staging;
    Arguments arguments = host;
    arguments.problem = staging.problem(*host.problem);
    place(staging, arguments);
    if (staging.too_large()) return ATTEST_UNSUPPORTED;
    arguments.workspace_bytes = state.workspace_bytes(*host.problem, direction);
    arguments.workspace = staging.workspace(arguments.workspace_bytes);
    arguments.stream = next_stream();
    staging.fill(arguments.stream);
    const attest_status status = call(*state.inner, arguments);
    require(cudaGetLastError(), "launch");
    finding = staging.finish(arguments.stream);
    if (!finding) return status;
  } catch (const DeviceError& error) {
    finding = Finding{Finding::Kind::device_failed, error.what()};
  }
  return ATTEST_FAILED;
}

attest_status forward(const void* self, const attest_forward_args* args) {
  return run(
      state_of(self), *args, ATTEST_FORWARD,
      [](Staging& staging, attest_forward_args& a) {
        a.Q = staging.tensor("Q", a.Q, Use::input);
        a.K = staging.tensor("K", a.K, Use::input);
        a.V = staging.tensor("V", a.V, Use::input);
        a.O = staging.tensor("O", a.O, Use::output);
        a.LSE = staging.tensor("LSE", a.LSE, Use::output);
      },
      [](const attest_kernel& inner, const attest_forward_args& a) {
        return inner.forward(inner.self, &a);
      });
}

attest_status backward(const void* self, const attest_backward_args* args) {
  return run(
      state_of(self), *args, ATTEST_BACKWARD,
      [](Staging& staging, attest_backward_args& a) {
        a.Q = staging.tensor("Q", a.Q, Use::input);
        a.K = staging.tensor("K", a.K, Use::input);
        a.V = staging.tensor("V", a.V, Use::input);
        a.O = staging.tensor("O", a.O, Use::input);
        a.LSE = staging.tensor("LSE", a.LSE, Use::input);
        a.dO = staging.tensor("dO", a.dO, Use::input);
        a.dLSE = staging.tensor("dLSE", a.dLSE, Use::input);
        a.dQ = staging.tensor("dQ", a.dQ, Use::output);
        a.dK = staging.tensor("dK", a.dK, Use::output);
        a.dV = staging.tensor("dV", a.dV, Use::output);
      },
      [](const attest_kernel& inner, const attest_backward_args& a) {
        return inner.backward(inner.self, &a);
      });
}

attest_status loss_gradient(const void* self, const attest_loss_args* args) {
  return run(
      state_of(self), *args, ATTEST_LOSS_GRADIENT,
      [](Staging& staging, attest_loss_args& a) {
        a.A1 = staging.tensor("A1", a.A1, Use::input);
        a.A2 = staging.tensor("A2", a.A2, Use::input);
        a.A3 = staging.tensor("A3", a.A3, Use::input);
        a.E = staging.tensor("E", a.E, Use::input);
        a.X = staging.tensor("X", a.X, Use::input);
        a.Y = staging.tensor("Y", a.Y, Use::input);
        a.dX = staging.tensor("dX", a.dX, Use::output);
        a.dY = staging.tensor("dY", a.dY, Use::output);
      },
      [](const attest_kernel& inner, const attest_loss_args& a) {
        return inner.loss_gradient(inner.self, &a);
      });
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
  if (inner.forward != nullptr) kernel_.forward = forward;
  if (inner.backward != nullptr) kernel_.backward = backward;
  if (inner.loss_gradient != nullptr) kernel_.loss_gradient = loss_gradient;
}

StagedKernel::~StagedKernel() = default;

}  // namespace attest::gpu::cuda
