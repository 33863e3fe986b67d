#include "gpu/runtime/emulated_device.hpp"

#include <dlfcn.h>

#include <cstring>
#include <filesystem>

#include "core/error.hpp"

namespace attest::gpu::runtime {
namespace {

void *runtime = nullptr, *driver = nullptr;
const CallInterface* interface = nullptr;

// A library of lib/attest, to which others bind from now on.
void* loaded(const std::string& name) {
  namespace fs = std::filesystem;
  const fs::path file =
      fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib/attest" / name;
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library != nullptr) return library;
  throw InvalidProblem("--emulate: the runtime library does not load: " + std::string(dlerror()) +
                       "; install attest again");
}

}  // namespace

void load_emulated_device(int major) {
  runtime = loaded("libcudart.so." + std::to_string(major));
  driver = loaded("libcuda.so.1");
  void* const symbol = dlsym(runtime, kCallInterface);
  const CallInterface* (*get)() = nullptr;
  std::memcpy(&get, &symbol, sizeof symbol);
  interface = get();
}

std::vector<std::string> missing_functions(const std::vector<std::string>& needed) {
  std::vector<std::string> missing;
  for (const std::string& name : needed) {
    if (dlsym(runtime, name.c_str()) == nullptr && dlsym(driver, name.c_str()) == nullptr) {
      missing.push_back(name);
    }
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
