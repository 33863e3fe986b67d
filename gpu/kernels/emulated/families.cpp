#include "gpu/kernels/emulated/families.hpp"

#include "gpu/kernels/flash2/flash2.hpp"
#include "gpu/kernels/loss/loss_large.hpp"
#include "gpu/kernels/loss/loss_rows.hpp"
#include "gpu/kernels/loss/loss_small.hpp"
#include "gpu/kernels/square_tiled/square_tiled.hpp"
#include "gpu/kernels/square_tiled/square_tiled_bwd.hpp"
#include "gpu/kernels/two_pass/two_pass.hpp"

namespace attest::gpu {
namespace {

// By the schedule that the kernel names.
Variant named(const EmulatedKernel& kernel) {
  std::string schedule = kernel.description().schedule;
  return {&kernel, [schedule](const AttentionShape&) { return schedule; }};
}

template <int kRows>
Variant two_pass() {
  return {&flash2_held_kernel<kRows>(), two_pass_schedule<kRows>};
}

template <int kSide>
Variant square_tiled_bwd() {
  return {&square_tiled_bwd_side_kernel<kSide>(),
          [](const AttentionShape&) { return square_tiled_bwd_schedule(kSide); }};
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> all{
      {"flash2",
       ATTEST_FORWARD,
       {named(flash2_held_kernel<64>()), named(flash2_held_kernel<32>()),
        named(flash2_held_kernel<16>()), named(flash2_held_kernel<8>()),
        named(flash2_held_kernel<4>())}},
      {"square_tiled",
       ATTEST_FORWARD,
       {named(square_tiled_side_kernel<128>()), named(square_tiled_side_kernel<64>()),
        named(square_tiled_kernel()), named(square_tiled_side_kernel<16>())}},
      {"two_pass",
       ATTEST_BACKWARD,
       {two_pass<64>(), two_pass<32>(), two_pass<16>(), two_pass<8>(), two_pass<4>()}},
      {"square_tiled_bwd",
       ATTEST_BACKWARD,
       {square_tiled_bwd<128>(), square_tiled_bwd<64>(), square_tiled_bwd<32>(),
        square_tiled_bwd<16>()}},
      {"loss_large",
       ATTEST_LOSS_GRADIENT,
       {named(loss_large_held_kernel<32>()), named(loss_large_held_kernel<16>()),
        named(loss_large_held_kernel<8>())}},
      {"loss_rows",
       ATTEST_LOSS_GRADIENT,
       {named(loss_rows_held_kernel<32>()), named(loss_rows_held_kernel<16>()),
        named(loss_rows_held_kernel<8>())}},
      {"loss_small",
       ATTEST_LOSS_GRADIENT,
       {named(loss_small_side_kernel<128>()), named(loss_small_side_kernel<64>()),
        named(loss_small_kernel()), named(loss_small_side_kernel<16>())}}};
  return all;
}

}  // namespace attest::gpu
