#include "certify/campaign/where_run.hpp"

#include "gpu/register.hpp"
#include "gpu/runtime/emulated_device.hpp"

namespace attest::certify {
namespace {

// To Attest a function in Python is one of the host, which copies arrays to a device by itself.
constexpr std::string_view kOfPython = "a function in Python, with arrays of ", kPlace = " on ";

}  // namespace

std::string_view where_run(const attest_description& description) {
  const std::string_view summary = description.summary == nullptr ? "" : description.summary;
  if (description.device == ATTEST_CUDA) {
    return summary.rfind(gpu::runtime::kEmulatedSummary, 0) == 0
               ? "emulated on the host from its PTX"
               : "on a CUDA device";
  }
  if (summary.rfind(kOfPython, 0) == 0 && summary.find(kPlace) != std::string_view::npos) {
    return summary.substr(summary.find(kPlace) + 1);
  }
  return is_emulated(description.name) ? "emulated on the host" : "on the CPU";
}

}  // namespace attest::certify
