#include "gpu/kernels/two_pass.hpp"

#include "gpu/kernels/backward_lines.cuh"
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
  const AttentionShape& shape = call.arguments.shape;
  return with_backward_tile(widest_head(shape), [&](auto tile) {
    using Tile = decltype(tile);
    simt::LaunchReport report = launch_line(query_line(tile, shape), emulation, call.memory,
                                            two_pass_queries<Tile, simt::Counted>, call.arguments);
    report += launch_line(key_line(tile, shape), emulation, call.memory,
                          two_pass_keys<Tile, simt::Counted>, call.arguments);
    return report;
  });
}

}  // namespace attest::gpu
