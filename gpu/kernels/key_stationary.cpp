#include "gpu/kernels/key_stationary.hpp"

#include "gpu/kernels/backward_launch.hpp"
#include "gpu/kernels/flash2.hpp"
#include "gpu/kernels/key_stationary.cuh"

namespace attest::gpu {
namespace {

attest_status backward(const void*, const attest_backward_args* args) {
  if (args->problem->dtype != ATTEST_F32) return ATTEST_UNSUPPORTED;
  const EmulatedBackward call(*args);
  simt::Emulation emulation;
  emulation.threads = args->problem->num_threads;
  if (!key_stationary_fits(call.arguments.shape, emulation)) return ATTEST_UNSUPPORTED;
  return key_stationary_emulated(call, emulation).diagnoses.empty() ? ATTEST_OK : ATTEST_FAILED;
}

}  // namespace

bool key_stationary_fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return widest_head(shape) <= WidestTile::kMostColumns && delta_line(shape).fits(emulation) &&
         with_backward_tile(widest_head(shape),
                            [&](auto tile) { return key_line(tile, shape).fits(emulation); });
}

std::string key_stationary_schedule(const AttentionShape& shape) {
  return "key_stationary:bq=" + std::to_string(passing_rows(shape)) + ",bk=32";
}

simt::LaunchReport key_stationary_prepare_emulated(const EmulatedBackward& call,
                                                   const simt::Emulation& emulation) {
  return launch_line(delta_line(call.arguments.shape), emulation, call.memory,
                     key_stationary_prepare<simt::Counted>, call.arguments);
}

simt::LaunchReport key_stationary_keys_emulated(const EmulatedBackward& call,
                                                const simt::Emulation& emulation) {
  const AttentionShape& shape = call.arguments.shape;
  return with_backward_tile(widest_head(shape), [&](auto tile) {
    return launch_line(key_line(tile, shape), emulation, call.memory,
                       key_stationary_keys<decltype(tile), simt::Counted>, call.arguments);
  });
}

simt::LaunchReport key_stationary_emulated(const EmulatedBackward& call,
                                           const simt::Emulation& emulation) {
  simt::LaunchReport report = key_stationary_prepare_emulated(call, emulation);
  report += key_stationary_keys_emulated(call, emulation);
  return report;
}

const attest_kernel& key_stationary_kernel() {
  static const attest_kernel kernel = [] {
    attest_kernel k = flash2_kernel();
    attest_description& d = k.description;
    d.name = "gpu/key_stationary";
    d.summary =
        "CUDA, emulated on the host: forward of gpu/flash2; backward with atomic additions to dQ";
    d.numerics.nondeterministic = 1;
    k.backward = backward;
    return k;
  }();
  return kernel;
}

}  // namespace attest::gpu
