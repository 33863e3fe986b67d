#include "gpu/kernels/flash2.hpp"

#include <algorithm>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/kernels/flash2.cuh"
#include "gpu/testing/call.hpp"

namespace attest::gpu {
namespace {

TEST_CASE("no order of lanes and blocks changes a bit, and nothing is wrong in any",
          "[gpu][flash2]") {
  for (const char* text : testing::problems()) {
    INFO(text);
    std::vector<std::vector<std::uint32_t>> outputs;
    for (const simt::Emulation& emulation : testing::checked_orders()) {
      const testing::Call call(text);
      const EmulatedForward emulated(call.forward_arguments());
      const simt::LaunchReport report = flash2_forward_emulated(emulated, emulation);
      CHECK(report.to_string().empty());
      std::vector<std::uint32_t> bits = testing::bits_of({&call.O, &call.LSE});
      CHECK(std::count(bits.begin(), bits.end(), ~std::uint32_t{0}) == 0);  // all are written
      outputs.push_back(std::move(bits));
    }
    for (const auto& bits : outputs) CHECK(bits == outputs.front());
  }
}

TEST_CASE("words moved are those of the schedule it names", "[gpu][flash2][words]") {
  for (const char* text : testing::problems()) {
    INFO(text);
    const testing::Call call(text);
    const Problem& p = call.problem;
    const EmulatedForward emulated(call.forward_arguments());
    const simt::LaunchReport report = flash2_forward_emulated(emulated, {});
    const testing::TileWords words = testing::visited_tiles(p, Flash2::kBlockQ, Flash2::kBlockK);
    const auto bytes = [&](const char* name) { return traffic_of(emulated.memory, report, name); };
    const std::int64_t heads = p.num_heads_q, rows = p.batch * heads * p.seqlen_q;
    CHECK(bytes("Q") == simt::GlobalTraffic{4 * heads * words.queries * p.head_dim_qk, 0});
    CHECK(bytes("K") == simt::GlobalTraffic{4 * heads * words.tile_keys * p.head_dim_qk, 0});
    CHECK(bytes("V") == simt::GlobalTraffic{4 * heads * words.tile_keys * p.head_dim_v, 0});
    CHECK(bytes("O") == simt::GlobalTraffic{0, 4 * rows * p.head_dim_v});
    CHECK(bytes("LSE") == simt::GlobalTraffic{0, 4 * rows});
  }
}

TEST_CASE("what does not fit is refused before anything is written", "[gpu][flash2]") {
  const attest_kernel& kernel = flash2_kernel();
  const testing::Call wide("sq=2,d=8,dv=577"), deep("sq=2,d=1500"),
      latent("sq=3,sk=40,d=576,dv=512");
  const auto forward = [&](const testing::Call& call) {
    const attest_forward_args args = call.forward_arguments();
    return kernel.forward(kernel.self, &args);
  };
  CHECK(forward(wide) == ATTEST_UNSUPPORTED);
  CHECK(forward(deep) == ATTEST_UNSUPPORTED);
  const std::vector<std::uint32_t> bits = wide.O.bits();
  CHECK(std::count(bits.begin(), bits.end(), ~std::uint32_t{0}) == 2 * 577);
  CHECK(forward(latent) == ATTEST_OK);
}

TEST_CASE("more blocks than a grid has are refused", "[gpu][flash2]") {
  CHECK(blocks_for(33, 32, 70000, 3) == 2 * 70000 * std::int64_t{3});
  CHECK(blocks_for(0, 32, 8, 8) == 0);
  CHECK(blocks_for(32, 32, kMostBlocks, 1) <= kMostBlocks);
  CHECK(blocks_for(33, 32, kMostBlocks, 1) > kMostBlocks);
}

TEST_CASE("the fast memory declared holds what the emulation saw and the sums of a block",
          "[gpu][flash2]") {
  for (const char* text : testing::problems()) {
    INFO(text);
    const testing::Call call(text);
    const EmulatedForward emulated(call.forward_arguments());
    const FastMemory memory = flash2_fast_memory(emulated.arguments.shape);
    CHECK(memory.shared_bytes == flash2_forward_emulated(emulated, {}).shared_bytes);
    // O of a block is in registers.
    CHECK(memory.words() - memory.shared_bytes / 4 >= Flash2::kBlockQ * call.problem.head_dim_v);
  }
}

}  // namespace
}  // namespace attest::gpu
