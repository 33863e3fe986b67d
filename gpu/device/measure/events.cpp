#include "gpu/device/measure/events.cuh"

#include <algorithm>

#include "gpu/device/kernels/require.cuh"

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

std::vector<double> seconds_of_runs(int repetitions, cudaStream_t stream,
                                    const std::function<void()>& enqueue) {
  constexpr double kSecondsPerMillisecond = 1e-3;
  const Event begin, end;
  enqueue();
  std::vector<double> seconds;
  for (int k = 0; k < repetitions; ++k) {
    require(cudaEventRecord(begin.get(), stream), "event");
    enqueue();
    require(cudaEventRecord(end.get(), stream), "event");
    require(cudaEventSynchronize(end.get()), "timed work");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "elapsed time");
    seconds.push_back(kSecondsPerMillisecond * static_cast<double>(milliseconds));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

}  // namespace attest::gpu::cuda
