#include "certify/worker/library/library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <deque>

#include "certify/worker/library/description.hpp"
#include "certify/worker/library/elf.hpp"
#include "core/error.hpp"
#include "gpu/register.hpp"
#include "gpu/runtime/emulated_device.hpp"

namespace attest::certify::worker {
namespace {

constexpr std::uint32_t kMostKernels = 4096;
constexpr const char* kSymbol = "attest_get_kernel";
constexpr const char* kMangled = "_Z17attest_get_kernelj";

std::string loader_reason() {
  const char* text = dlerror();
  return text == nullptr ? "unknown reason" : text;
}

// Before it is loaded: the loader names the first one alone.
void require_functions(const std::string& path) {
  std::vector<std::string> needed = undefined_symbols(path);
  std::erase_if(needed, [](const std::string& name) {
    const bool of_driver =
        name.rfind("cu", 0) == 0 && name.size() > 2 && std::isupper(name[2]) != 0;
    return name.rfind("cuda", 0) != 0 && name.rfind("__cuda", 0) != 0 && !of_driver;
  });
  std::sort(needed.begin(), needed.end());
  std::string names;
  for (const std::string& name : gpu::runtime::missing_functions(needed)) {
    names += (names.empty() ? "" : ", ") + name;
  }
  if (names.empty()) return;
  throw InvalidProblem("library '" + path + "': calls " + names +
                       ", which the emulated device has not; docs/how-to/"
                       "cuda-libraries-without-a-gpu.md lists what it has");
}

// Version of the runtime that it is linked with; the newest where it is linked with none.
int runtime_major_of(const std::string& path) {
  constexpr std::string_view kSoname = "libcudart.so.";
  for (const std::string& name : needed_libraries(path)) {
    if (name.rfind(kSoname, 0) != 0) continue;
    const std::string version = name.substr(kSoname.size());
    if (version == "12") return 12;
    if (version == "13") return 13;
    throw InvalidProblem("library '" + path + "': is linked with " + name +
                         "; libcudart.so.12 and libcudart.so.13 are emulated: build it with nvcc "
                         "12 or 13");
  }
  return 13;
}

// The same kernel, whose summary says that it is emulated. It lasts as long as the program.
const attest_kernel& emulated(const attest_kernel& kernel) {
  if (kernel.description.device != ATTEST_CUDA) {
    throw InvalidProblem("has its tensors on the CPU; leave --emulate out");
  }
  struct Emulated {
    std::string summary;
    attest_kernel kernel;
  };
  static std::deque<Emulated> all;
  const char* const summary = kernel.description.summary;
  Emulated& made = all.emplace_back(Emulated{
      gpu::runtime::kEmulatedSummary + (" as " + gpu::runtime::device_of_kernels() + ": ") +
          (summary == nullptr ? "" : summary),
      kernel});
  made.kernel.description.summary = made.summary.c_str();
  return made.kernel;
}

}  // namespace

std::vector<const attest_kernel*> open_library(const std::string& path, bool emulate) {
  const auto refuse = [&path](const std::string& why) {
    throw InvalidProblem("library '" + path + "': " + why);
  };
  if (emulate) {
    gpu::runtime::load_emulated_device(runtime_major_of(path));
    require_functions(path);
  }
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    refuse("does not load: " + loader_reason() + "; `ldd` shows what it needs");
  }
  void* const symbol = dlsym(library, kSymbol);
  if (symbol == nullptr) {
    refuse(dlsym(library, kMangled) != nullptr
               ? "exports attest_get_kernel with a C++ name; include attest_kernel.h where it is "
                 "defined, or declare it extern \"C\""
               : "does not export attest_get_kernel; define it as attest_kernel.h says and leave "
                 "it visible");
  }
  using GetKernel = const attest_kernel* (*)(std::uint32_t);
  GetKernel get_kernel = nullptr;
  std::memcpy(&get_kernel, &symbol, sizeof symbol);  // POSIX's way from object to function pointer
  std::vector<const attest_kernel*> kernels;
  while (const attest_kernel* kernel = get_kernel(static_cast<std::uint32_t>(kernels.size()))) {
    const std::string which = "kernel " + std::to_string(kernels.size()) + ": ";
    const std::string why = objection(*kernel);
    if (!why.empty()) refuse(which + why);
    for (const attest_kernel* other : kernels) {
      if (std::strcmp(other->description.name, kernel->description.name) == 0) {
        refuse(which + "description.name is '" + kernel->description.name +
               "', as of an earlier kernel; names must differ");
      }
    }
    if (kernels.size() == kMostKernels) {
      refuse("attest_get_kernel never returns NULL; return it past the last kernel");
    }
    try {
      const bool on_device = kernel->description.device == ATTEST_CUDA;
      kernels.push_back(emulate     ? &emulated(*kernel)
                        : on_device ? &on_host_tensors(*kernel)
                                    : kernel);
    } catch (const InvalidProblem& error) {
      refuse(
          which + "'" + kernel->description.name + "' " + error.what() +
          (emulate ? "" : "; with --emulate, attest certify and attest check carry its PTX out"));
    }
  }
  if (kernels.empty()) refuse("attest_get_kernel(0) is NULL; return a kernel");
  if (emulate) {
    if (const std::string why = gpu::runtime::objection_to_kernels(); !why.empty()) refuse(why);
  }
  return kernels;
}

}  // namespace attest::certify::worker
