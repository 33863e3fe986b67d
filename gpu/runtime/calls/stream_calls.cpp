// Streams and events. Work is done when the function that begins it returns, so none waits.
#include <chrono>

#include "gpu/runtime/device.hpp"

using attest::gpu::runtime::Device;
using attest::gpu::runtime::Status;
using attest::gpu::runtime::Stream;

namespace {

using Clock = std::chrono::steady_clock;

struct OwnStream {};
struct Event {
  Clock::time_point when;
};

}  // namespace

extern "C" {

Status cudaStreamCreate(OwnStream** stream) {
  *stream = new OwnStream;
  return Status::success;
}
Status cudaStreamCreateWithFlags(OwnStream** stream, unsigned) { return cudaStreamCreate(stream); }
Status cudaStreamCreateWithPriority(OwnStream** stream, unsigned, int) {
  return cudaStreamCreate(stream);
}
Status cudaStreamDestroy(OwnStream* stream) {
  delete stream;
  return Status::success;
}
Status cudaStreamSynchronize(Stream) { return Status::success; }
Status cudaStreamQuery(Stream) { return Status::success; }
Status cudaStreamWaitEvent(Stream, const Event*, unsigned) { return Status::success; }
Status cudaStreamIsCapturing(Stream, int* status) {
  *status = 0;
  return Status::success;
}
Status cudaLaunchHostFunc(Stream stream, void (*function)(void*), void* data) {
  Device::instance().call([&](Device& device) {
    device.require_call_stream(stream, "a function of the host");
    return Status::success;
  });
  function(data);
  return Status::success;
}

Status cudaEventCreateWithFlags(Event** event, unsigned) {
  *event = new Event;
  return Status::success;
}
Status cudaEventCreate(Event** event) { return cudaEventCreateWithFlags(event, 0); }
Status cudaEventDestroy(Event* event) {
  delete event;
  return Status::success;
}
Status cudaEventRecord(Event* event, Stream) {
  event->when = Clock::now();
  return Status::success;
}
Status cudaEventSynchronize(const Event*) { return Status::success; }
Status cudaEventQuery(const Event*) { return Status::success; }
Status cudaEventElapsedTime(float* milliseconds, const Event* begin, const Event* end) {
  *milliseconds = std::chrono::duration<float, std::milli>(end->when - begin->when).count();
  return Status::success;
}

Status cudaDeviceSynchronize() { return Status::success; }

}  // extern "C"
