#include "gpu/kernels/two_pass.hpp"

#include "gpu/kernels/two_pass.cuh"

namespace attest::gpu {

bool two_pass_fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return widest_head(shape) <= WidestTile::kMostColumns &&
         with_backward_tile(widest_head(shape), [&](auto tile) {
           return fits(query_line(tile, shape), emulation) &&
                  fits(key_line(tile, shape), emulation);
         });
}

std::string two_pass_schedule(const AttentionShape& shape) {
  const std::string passing = std::to_string(passing_rows(shape));
  return "two_pass:bq=32,bk=" + passing + ",cq=" + passing + ",ck=32";
}

simt::LaunchReport two_pass_emulated(const EmulatedBackward& call,
                                     const simt::Emulation& emulation) {
  EmulatedLaunches launches(emulation, call.memory);
  two_pass_launches(call.arguments, launches);
  return launches.report();
}

FastMemory two_pass_fast_memory(const AttentionShape& shape) {
  return with_backward_tile(widest_head(shape), [&](auto tile) {
    const auto of_pass = [&](const char* kernel, const BlockLine& line) {
      return FastMemory{line.dynamic_shared_bytes, line.lanes,
                        declared_thread_memory(kernel_of_tile(kernel, tile))};
    };
    const FastMemory queries = of_pass("two_pass_queries", query_line(tile, shape)),
                     keys = of_pass("two_pass_keys", key_line(tile, shape));
    return queries.words() > keys.words() ? queries : keys;
  });
}

}  // namespace attest::gpu
