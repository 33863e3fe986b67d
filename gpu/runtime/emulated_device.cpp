#include "gpu/runtime/emulated_device.hpp"

#include <dlfcn.h>

#include <cstring>
#include <filesystem>

#include "core/error.hpp"

namespace attest::gpu::runtime {
namespace {

void* library = nullptr;
const CallInterface* interface = nullptr;

}  // namespace

void load_emulated_device(int major) {
  namespace fs = std::filesystem;
  const fs::path file = fs::read_symlink("/proc/self/exe").parent_path().parent_path() /
                        ("lib/attest/libcudart.so." + std::to_string(major));
  library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* const symbol = library == nullptr ? nullptr : dlsym(library, kCallInterface);
  if (symbol == nullptr) {
    const char* const reason = dlerror();
    throw InvalidProblem("--emulate: the runtime library does not load: " +
                         std::string(reason == nullptr ? file.string() : reason) +
                         "; install attest again");
  }
  const CallInterface* (*get)() = nullptr;
  std::memcpy(&get, &symbol, sizeof symbol);
  interface = get();
}

std::vector<std::string> missing_functions(const std::vector<std::string>& needed) {
  std::vector<std::string> missing;
  for (const std::string& name : needed) {
    if (dlsym(library, name.c_str()) == nullptr) missing.push_back(name);
  }
  return missing;
}

std::string objection_to_kernels() { return interface->objection(); }

std::string device_of_kernels() { return interface->device(); }

void begin_emulated_call(std::span<const CallBuffer> buffers) {
  if (interface != nullptr) interface->begin_call(buffers.data(), buffers.size());
}

EmulatedOutcome end_emulated_call() {
  if (interface == nullptr) return {};
  const char* text = "";
  const Outcome outcome = interface->end_call(&text);
  return {outcome, text};
}

}  // namespace attest::gpu::runtime
