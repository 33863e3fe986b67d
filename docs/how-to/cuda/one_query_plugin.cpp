// one_query.cu as a library for `attest certify`, emulated on the host.
#include <cstdio>
#include <cstdlib>

#include "core/abi/attest_kernel.h"
#include "gpu/simt/launch.hpp"
#include "one_query.cu"

namespace {

namespace simt = attest::simt;

Strides strides_of(const attest_tensor& t) {
  return {t.strides[0], t.strides[1], t.strides[2], t.strides[3]};
}

float* first_of(const attest_tensor& t) {
  return reinterpret_cast<float*>(static_cast<char*>(t.data) + t.byte_offset);
}

// Elements from the first to the last, for the emulation's bounds.
std::int64_t span_of(const attest_tensor& t) {
  std::int64_t last = 0;
  for (int axis = 0; axis < t.ndim; ++axis) {
    if (t.shape[axis] == 0) return 0;
    last += (t.shape[axis] - 1) * t.strides[axis];
  }
  return last + 1;
}

// Each problem in one order of lanes and blocks, by its sizes. Where this file is compiled with
// hooks, accesses to shared memory are held against one another.
simt::Emulation emulation_of(const attest_problem& p) {
  constexpr simt::Order kOrders[] = {simt::Order::ascending, simt::Order::descending,
                                     simt::Order::shuffled};
  simt::Emulation emulation;
  emulation.most_diagnoses = 1;
  emulation.order = kOrders[(p.seqlen_q + p.seqlen_k + p.head_dim_v) % 3];
#ifdef ATTEST_HOOKED_KERNELS
  emulation.shared_checks = simt::SharedChecks::on;
#endif
  return emulation;
}

attest_status forward(const void*, const attest_forward_args* args) {
  const attest_problem& p = *args->problem;
  const std::int64_t rows = p.batch * p.num_heads_q;
  if (p.seqlen_q == 0 || rows == 0) return ATTEST_OK;
  if (p.seqlen_k == 0 || rows > 65535) return ATTEST_UNSUPPORTED;
  simt::GlobalMemory memory;
  const auto input = [&memory](const char* name, const attest_tensor& t) {
    return memory.add(name, static_cast<const float*>(first_of(t)), span_of(t));
  };
  const Arguments<simt::Counted> arguments{static_cast<int>(p.num_heads_q),
                                           static_cast<int>(p.seqlen_q),
                                           static_cast<int>(p.seqlen_k),
                                           static_cast<int>(p.head_dim_qk),
                                           static_cast<int>(p.head_dim_v),
                                           static_cast<float>(p.softmax_scale),
                                           input("Q", *args->Q),
                                           input("K", *args->K),
                                           input("V", *args->V),
                                           memory.add("O", first_of(*args->O), span_of(*args->O)),
                                           strides_of(*args->Q),
                                           strides_of(*args->K),
                                           strides_of(*args->V),
                                           strides_of(*args->O),
                                           {}};
  const simt::LaunchReport report = simt::launch(
      {{static_cast<unsigned>(p.seqlen_q), static_cast<unsigned>(rows), 1}, {32, 1, 1}, 0},
      emulation_of(p), memory, one_query<simt::Counted>, arguments);
  if (report.clean()) return ATTEST_OK;
  std::fputs(report.to_string().c_str(), stderr);  // last words are in the finding
  std::abort();
}

attest_kernel make_kernel() {
  attest_kernel kernel{};
  kernel.struct_size = sizeof kernel;
  kernel.abi_version = ATTEST_ABI_VERSION;
  attest_description& d = kernel.description;
  d.struct_size = sizeof d;
  d.name = "example/one_query";
  d.summary = "CUDA, emulated: a warp for each query";
  d.device = ATTEST_CPU;
  d.directions = ATTEST_FORWARD;
  d.dtypes = 1U << ATTEST_F32;
  d.features = ATTEST_HEAD_DIM_V | ATTEST_ANY_SCALE | ATTEST_ANY_STRIDES | ATTEST_CROSS_LENGTHS;
  d.numerics.struct_size = sizeof d.numerics;
  kernel.forward = forward;
  return kernel;
}

}  // namespace

const attest_kernel* attest_get_kernel(std::uint32_t index) {
  static const attest_kernel kernel = make_kernel();
  return index == 0 ? &kernel : nullptr;
}
