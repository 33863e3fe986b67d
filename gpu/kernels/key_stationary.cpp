#include "gpu/kernels/key_stationary.hpp"

#include "gpu/kernels/backward_lines.cuh"
#include "gpu/kernels/flash2.hpp"
#include "gpu/kernels/key_stationary.cuh"

namespace attest::gpu {
bool key_stationary_fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return widest_head(shape) <= WidestTile::kMostColumns && fits(delta_line(shape), emulation) &&
         with_backward_tile(widest_head(shape),
                            [&](auto tile) { return fits(key_line(tile, shape), emulation); });
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

const EmulatedKernel& key_stationary_kernel() {
  static const EmulatedKernel kernel(
      [] {
        attest_description d = flash2_kernel().description();
        d.name = "gpu/key_stationary";
        d.summary =
            "CUDA, emulated on the host: forward of gpu/flash2; backward with atomic additions to "
            "dQ";
        d.numerics.nondeterministic = 1;
        return d;
      }(),
      {.forward = flash2_kernel().directions().forward,
       .backward = {key_stationary_fits, delta_words,
                    [](EmulatedBackward& call, const simt::Emulation& emulation) {
                      return key_stationary_emulated(call, emulation);
                    }}});
  return kernel;
}

}  // namespace attest::gpu
