// The functions that the worker asks for.
#include "gpu/runtime/calls/call_interface.hpp"
#include "gpu/runtime/device.hpp"

extern "C" const attest::gpu::runtime::CallInterface* attest_cuda_call_interface() {
  using attest::gpu::runtime::CallBuffer;
  using attest::gpu::runtime::Device;
  static constexpr attest::gpu::runtime::CallInterface kInterface{
      [](const CallBuffer* buffers, std::size_t count) {
        Device::instance().begin_call({buffers, count});
      },
      [](const char** text) { return Device::instance().end_call(text); },
      [] { return Device::instance().objection(); },
      [] { return Device::instance().capability().name; }};
  return &kInterface;
}
