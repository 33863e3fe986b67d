#pragma once

#include <cstddef>
#include <cstdint>

/// Words between a worker and the runtime library that it loads; both are of one build.
namespace attest::gpu::runtime {

/// Memory that a call hands to a kernel as the device's.
struct CallBuffer {
  const char* name;
  void* data;
  std::size_t bytes;
  bool is_writable;
};

/// The stream of every call, an address that is nobody's.
inline constexpr std::uintptr_t kCallStream = 0x5354'5245'414D;

enum class Outcome : std::uint8_t {
  clean,
  found,         // the executor found the kernel wrong
  not_emulated,  // a function, an instruction or a form of launch that is not carried out
};

/// Functions of the runtime library for the worker, beside CUDA's.
struct CallInterface {
  void (*begin_call)(const CallBuffer* buffers, std::size_t count);
  /// The text is there until the next call.
  Outcome (*end_call)(const char** text);
  /// Why kernels that libraries have registered cannot be carried out; "" where they can.
  const char* (*objection)();
  /// The device that they run on, like "sm_90".
  const char* (*device)();
};

/// The name under which the library exports a function that returns its CallInterface.
inline constexpr const char* kCallInterface = "attest_cuda_call_interface";

}  // namespace attest::gpu::runtime
