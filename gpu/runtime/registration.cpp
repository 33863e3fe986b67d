// Functions that nvcc's code calls when a library is loaded and unloaded.
#include "gpu/runtime/device.hpp"

using attest::gpu::runtime::Device;
using attest::gpu::runtime::Module;
using attest::gpu::runtime::Status;

namespace {

Module& module_of(void** handle) { return *reinterpret_cast<Module*>(handle); }

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  void** handle = nullptr;
  Device::instance().call([&](Device& device) {
    handle = reinterpret_cast<void**>(&device.add_module(wrapper));
    return Status::success;
  });
  return handle;
}

void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, void*,
                            void*, void*, void*, int*) {
  Device::instance().call([&](Device& device) {
    device.add_kernel(module_of(handle), host, name);
    return Status::success;
  });
}

void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, std::size_t, int,
                       int) {
  Device::instance().call([&](Device& device) {
    device.add_variable(module_of(handle), host, name);
    return Status::success;
  });
}

}  // extern "C"
