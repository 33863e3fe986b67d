// A library for CUDA as nvcc makes one, for machines without nvcc: the PTX of
// docs/how-to/plugins/device_attention.cu, in fat binaries made here, and the host's side of it.
// ATTEST_BY_HAND: 1 has no PTX, 2 calls what is not provided, 3 is one of CUDA 12.
// Its other kernels have one mistake each.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "core/abi/attest_kernel.h"
#include "gpu/runtime/testing/fat_binary.hpp"

namespace fat = attest::gpu::runtime::testing;

extern "C" {
struct Dim3 {
  unsigned x, y, z;
};
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, void*,
                            void*, void*, void*, int*);
int cudaLaunchKernel(const void* host, Dim3 grid, Dim3 block, void** arguments, std::size_t shared,
                     void* stream);
int cudaPeekAtLastError();
#if ATTEST_BY_HAND == 3
int cudaRuntimeGetVersion(int* version);
int cudaGetDeviceProperties_v2(char* properties, int device);
#elif ATTEST_BY_HAND == 2
int cudaGraphLaunch(void* graph, void* stream);
int cudaGraphUpload(void* graph, void* stream);
#endif
}

namespace {

struct Variant {
  const char* name;
  const char *from, *to;  // in the PTX
  bool on_default_stream = false;
  enum class OnError { fail, raise, abort } on_error = OnError::fail;
  fat::Wrapper wrapper{};
  std::string bytes{};
};

Variant variants[] = {
    {"hand/right", "", ""},
    {"hand/one_row_more", "setp.ge.s64 \t%p1,", "setp.gt.s64 \t%p1,"},
    {"hand/multiplied", "div.rn.f32", "mul.rn.f32"},
    {"hand/default_stream", "", "", true},
    {"hand/throws", "setp.ge.s64 \t%p1,", "setp.gt.s64 \t%p1,", false, Variant::OnError::raise},
    {"hand/aborts", "setp.ge.s64 \t%p1,", "setp.gt.s64 \t%p1,", false, Variant::OnError::abort},
    {"hand/unknown_opcode", "ex2.approx.ftz.f32", "ex7.approx.ftz.f32"},
    {"hand/unknown_aborts", "ex2.approx.ftz.f32", "ex7.approx.ftz.f32", false,
     Variant::OnError::abort},
};
constexpr const char* kEntry = "_Z9attention14attest_problem6TensorS0_S0_S0_S0_";
constexpr std::size_t kVariants = std::size(variants);
attest_kernel kernels[kVariants];

struct Tensor {
  float* first;
  int64_t strides[4];
};

Tensor on_device(const attest_tensor* t) {
  Tensor tensor{};
  if (t == nullptr) return tensor;
  if (t->device.device_type != ATTEST_CUDA) throw std::logic_error("a tensor of the host");
  tensor.first = reinterpret_cast<float*>(static_cast<char*>(t->data) + t->byte_offset);
  for (int axis = 0; axis < t->ndim; ++axis) tensor.strides[axis] = t->strides[axis];
  return tensor;
}

#if ATTEST_BY_HAND == 3
// Fields of cudaDeviceProp as CUDA 12 has them, and nothing beyond.
bool is_cuda_12() {
  constexpr std::size_t kBytes = 1032, kProcessors = 388, kReservedShared = 720;
  char properties[kBytes + 1];
  properties[kBytes] = 77;
  int version = 0, processors = 0;
  std::size_t reserved = 0;
  cudaRuntimeGetVersion(&version);
  cudaGetDeviceProperties_v2(properties, 0);
  std::memcpy(&processors, properties + kProcessors, sizeof processors);
  std::memcpy(&reserved, properties + kReservedShared, sizeof reserved);
  return version == 12000 && processors == 108 && reserved == 1024 && properties[kBytes] == 77;
}
#endif

attest_status forward(const void* self, const attest_forward_args* a) {
#if ATTEST_BY_HAND == 3
  if (!is_cuda_12()) return ATTEST_FAILED;
#elif ATTEST_BY_HAND == 2
  cudaGraphLaunch(nullptr, nullptr);
  cudaGraphUpload(nullptr, nullptr);
#endif
  const auto& variant = *static_cast<const Variant*>(self);
  attest_problem p = *a->problem;
  Tensor tensors[] = {on_device(a->Q), on_device(a->K), on_device(a->V), on_device(a->O),
                      on_device(a->LSE)};
  void* arguments[] = {&p, &tensors[0], &tensors[1], &tensors[2], &tensors[3], &tensors[4]};
  constexpr unsigned kThreads = 128;
  const auto rows = static_cast<unsigned>(p.batch * p.num_heads_q * p.seqlen_q);
  if (rows == 0) return ATTEST_OK;
  cudaLaunchKernel(&variant, {(rows + kThreads - 1) / kThreads, 1, 1}, {kThreads, 1, 1}, arguments,
                   0, variant.on_default_stream ? nullptr : a->stream);
  if (cudaPeekAtLastError() == 0) return ATTEST_OK;
  if (variant.on_error == Variant::OnError::raise) throw std::runtime_error("a launch failed");
  if (variant.on_error == Variant::OnError::abort) std::abort();
  return ATTEST_FAILED;
}

std::string ptx_of(const Variant& variant) {
  std::ifstream file(ATTEST_BY_HAND_PTX);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t at = text.find(variant.from);
  if (text.empty() || at == std::string::npos) throw std::logic_error("no such PTX");
  return text.replace(at, std::strlen(variant.from), variant.to);
}

bool register_kernels() {
  for (std::size_t k = 0; k < kVariants; ++k) {
    Variant& variant = variants[k];
    const bool has_ptx = ATTEST_BY_HAND != 1;
    variant.bytes =
        fat::fat_binary({{has_ptx ? fat::kPtx : fat::kMachineCode, 80, ptx_of(variant)}});
    variant.wrapper.data = variant.bytes.data();
    auto* const host = reinterpret_cast<char*>(&variant);
    __cudaRegisterFunction(__cudaRegisterFatBinary(&variant.wrapper), host, host, kEntry, -1,
                           nullptr, nullptr, nullptr, nullptr, nullptr);
    attest_kernel& kernel = kernels[k];
    kernel.struct_size = sizeof kernel;
    kernel.abi_version = ATTEST_ABI_VERSION;
    kernel.description.struct_size = sizeof kernel.description;
    kernel.description.numerics.struct_size = sizeof kernel.description.numerics;
    kernel.description.name = variant.name;
    kernel.description.summary = "a thread for each row, float32";
    kernel.description.device = ATTEST_CUDA;
    kernel.description.directions = ATTEST_FORWARD;
    kernel.description.dtypes = 1U << ATTEST_F32;
    kernel.description.features = ATTEST_GQA | ATTEST_HEAD_DIM_V | ATTEST_LSE | ATTEST_ANY_STRIDES |
                                  ATTEST_CROSS_LENGTHS | ATTEST_ANY_SCALE;
    kernel.self = &variant;
    kernel.forward = forward;
  }
  return true;
}

const bool registered = register_kernels();  // when it is loaded, as nvcc has it

}  // namespace

extern "C" const attest_kernel* attest_get_kernel(uint32_t index) {
  return registered && index < kVariants ? &kernels[index] : nullptr;
}
