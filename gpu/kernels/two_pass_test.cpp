#include "gpu/kernels/two_pass.hpp"

#include <algorithm>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/kernels/flash2.hpp"
#include "gpu/testing/call.hpp"

namespace attest::gpu {
namespace {

using simt::GlobalTraffic;

TEST_CASE("backward: no order of lanes and blocks changes a bit, and nothing is wrong in any",
          "[gpu][two_pass]") {
  for (const char* text : testing::problems()) {
    INFO(text);
    std::vector<std::vector<std::uint32_t>> outputs;
    for (const simt::Emulation& emulation : testing::checked_orders()) {
      testing::Call call(text);
      const EmulatedForward forward(call.forward_arguments());
      CHECK(flash2_forward_emulated(forward, emulation).to_string().empty());
      const EmulatedBackward backward(call.backward_arguments());
      CHECK(two_pass_emulated(backward, emulation).to_string().empty());
      outputs.push_back(testing::bits_of({&call.dQ, &call.dK, &call.dV}));
      CHECK(std::count(outputs.back().begin(), outputs.back().end(), ~std::uint32_t{0}) == 0);
    }
    for (const auto& bits : outputs) CHECK(bits == outputs.front());
  }
}

TEST_CASE("backward: words moved are those of the schedule", "[gpu][two_pass][words]") {
  for (const char* text : testing::problems()) {
    INFO(text);
    testing::Call call(text);
    const Problem& p = call.problem;
    const EmulatedForward forward(call.forward_arguments());
    flash2_forward_emulated(forward, {});
    const EmulatedBackward backward(call.backward_arguments());
    const simt::LaunchReport report = two_pass_emulated(backward, {});
    const testing::TileWords words = testing::visited_tiles(p, 32, 32);
    const std::int64_t heads = p.num_heads_q, group = heads / p.num_heads_kv;
    const std::int64_t rows = p.batch * heads * p.seqlen_q,
                       columns = p.batch * p.num_heads_kv * p.seqlen_k;
    const auto moved = [&](const char* name) { return traffic_of(backward.memory, report, name); };
    const std::int64_t dk = p.head_dim_qk, dv = p.head_dim_v;
    // The first pass reads keys tile by tile, the second those of its block once for the group.
    const std::int64_t key_rows = heads * words.tile_keys + heads / group * words.keys;
    const std::int64_t query_rows = heads * (words.queries + words.tile_queries);
    CHECK(moved("K") == GlobalTraffic{4 * key_rows * dk, 0});
    CHECK(moved("V") == GlobalTraffic{4 * key_rows * dv, 0});
    CHECK(moved("Q") == GlobalTraffic{4 * query_rows * dk, 0});
    CHECK(moved("dO") == GlobalTraffic{4 * (rows + heads * words.tile_queries) * dv, 0});
    CHECK(moved("O") == GlobalTraffic{4 * rows * dv, 0});
    CHECK(moved("LSE") == GlobalTraffic{4 * query_rows, 0});
    CHECK(moved("dLSE") == GlobalTraffic{4 * rows, 0});
    CHECK(moved("D") == GlobalTraffic{4 * heads * words.tile_queries, 4 * rows});
    CHECK(moved("dQ") == GlobalTraffic{0, 4 * rows * dk});
    CHECK(moved("dK") == GlobalTraffic{0, 4 * columns * dk});
    CHECK(moved("dV") == GlobalTraffic{0, 4 * columns * dv});
  }
}

TEST_CASE("backward: head dimensions that no launch holds are refused", "[gpu][two_pass]") {
  const attest_kernel& kernel = flash2_kernel();
  for (const char* text : {"sq=4,d=800,dv=8", "sq=4,d=8,dv=800", "sq=4,d=577,dv=8"}) {
    INFO(text);
    testing::Call call(text);
    const attest_backward_args args = call.backward_arguments();
    CHECK(kernel.backward(kernel.self, &args) == ATTEST_UNSUPPORTED);
  }
}

TEST_CASE("backward: the fast memory declared holds what the emulation saw and a block's sums",
          "[gpu][two_pass]") {
  for (const char* text : testing::problems()) {
    INFO(text);
    testing::Call call(text);
    const EmulatedBackward backward(call.backward_arguments());
    const FastMemory memory = two_pass_fast_memory(backward.arguments.shape);
    CHECK(memory.shared_bytes == two_pass_emulated(backward, {}).shared_bytes);
    CHECK(memory.words() - memory.shared_bytes / 4 >= 32 * call.problem.head_dim_qk);
  }
}

}  // namespace
}  // namespace attest::gpu
