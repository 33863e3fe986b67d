#pragma once

#include <span>
#include <string>
#include <vector>

#include "gpu/runtime/calls/call_interface.hpp"

/// CUDA's runtime of this process, emulated: a library of the soname libcudart.so.12 or .13, to
/// which libraries that are loaded after it bind.
namespace attest::gpu::runtime {

/// Begins the summary of a kernel whose PTX is carried out.
inline constexpr const char* kEmulatedSummary = "its PTX, emulated on the host";

/// Loads the runtime library, which lies in lib/attest beside the folder of this program. Throws
/// InvalidProblem where it is not there.
void load_emulated_device(int major);

/// Returns the names that the runtime library has not.
std::vector<std::string> missing_functions(const std::vector<std::string>& needed);

/// Why the kernels of the libraries loaded by now cannot be carried out; "" where they can.
std::string objection_to_kernels();

/// The device that they run on, like "sm_90".
std::string device_of_kernels();

/// Hands the memory of a call over. Nothing where no runtime library is loaded.
void begin_emulated_call(std::span<const CallBuffer> buffers);

/// End of a call: `clean` where no runtime library is loaded.
struct EmulatedOutcome {
  Outcome outcome = Outcome::clean;
  std::string text;
};
EmulatedOutcome end_emulated_call();

}  // namespace attest::gpu::runtime
