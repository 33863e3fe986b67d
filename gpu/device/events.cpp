#include "gpu/device/events.cuh"

#include <algorithm>
#include <limits>

#include "gpu/device/require.cuh"

namespace attest::gpu::cuda {
namespace {

class Event {
 public:
  Event() { require(cudaEventCreate(&event_), "event"); }
  ~Event() { static_cast<void>(cudaEventDestroy(event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

double least_seconds(int repetitions, cudaStream_t stream, const std::function<void()>& enqueue) {
  const Event begin, end;
  enqueue();
  float least = std::numeric_limits<float>::infinity();
  for (int k = 0; k < repetitions; ++k) {
    require(cudaEventRecord(begin.get(), stream), "event");
    enqueue();
    require(cudaEventRecord(end.get(), stream), "event");
    require(cudaEventSynchronize(end.get()), "timed work");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "elapsed time");
    least = std::min(least, milliseconds);
  }
  constexpr double kSecondsPerMillisecond = 1e-3;
  return kSecondsPerMillisecond * static_cast<double>(least);
}

}  // namespace attest::gpu::cuda
