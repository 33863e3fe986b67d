#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "gpu/runtime/calls/call_interface.hpp"
#include "gpu/runtime/capability.hpp"
#include "gpu/runtime/cuda_types.hpp"
#include "gpu/runtime/device_memory.hpp"
#include "gpu/runtime/module.hpp"
#include "gpu/simt/launch.hpp"

namespace attest::gpu::runtime {

/// The one emulated device. Work on it is done when a function returns.
class Device {
 public:
  static constexpr std::int64_t kSharedBytes = 48 << 10;  // that a block has unasked

  static Device& instance();

  /// Carries out one of CUDA's functions, one at a time, and keeps its error for
  /// cudaGetLastError. One that is not carried out ends the campaign with its text.
  template <class Body>
  Status call(const Body& body);

  // Registration.
  Module& add_module(const void* wrapper);
  void add_kernel(Module& module, const void* host, const char* name);
  void add_variable(Module& module, const void* host, const char* name);

  /// The kernel of a host function or of a cudaKernel_t; null where it is neither.
  Kernel* kernel(const void* host);

  Status launch(Kernel* kernel, const simt::LaunchShape& shape, void* const* arguments,
                Stream stream);
  Status copy(void* to, const void* from, std::size_t bytes, bool to_device, bool from_device);
  Status fill(void* to, int value, std::size_t bytes);
  Status copy_to_symbol(const void* host, const void* from, std::size_t bytes, std::size_t offset);
  Status copy_from_symbol(void* to, const void* host, std::size_t bytes, std::size_t offset);

  /// Work belongs to the stream of the call: elsewhere, nothing orders it with the inputs.
  void require_call_stream(Stream stream, const std::string& work);

  /// 9.0 where a module has PTX for more than 8.0.
  const Capability& capability() const;
  DeviceMemory& memory() { return memory_; }
  Status take_error();
  Status last_error() const { return error_; }

  void begin_call(std::span<const CallBuffer> buffers);
  Outcome end_call(const char** text);
  const char* objection();

 private:
  struct Symbol {
    Module* module;
    std::string name;
  };

  Status keep(Status status);
  Status found(const std::string& text);
  std::vector<std::byte>& variable(const void* host, std::size_t bytes, std::size_t offset);

  std::recursive_mutex mutex_;  // functions of the host may be called from within a call
  DeviceMemory memory_;
  std::vector<std::unique_ptr<Module>> modules_;
  std::map<const void*, Kernel> kernels_;  // by the host's function
  std::map<const void*, Symbol> symbols_;  // by the host's variable
  Status error_ = Status::success;
  bool in_call_ = false;
  Outcome outcome_ = Outcome::clean;
  std::string text_, objection_;
};

template <class Body>
Status Device::call(const Body& body) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  try {
    return keep(body(*this));
  } catch (const InvalidProblem& error) {
    outcome_ = Outcome::not_emulated;
    text_ = error.what();
    return keep(Status::not_supported);
  } catch (const std::bad_alloc&) {
    return keep(Status::memory_allocation);
  }
}

}  // namespace attest::gpu::runtime
