#include "gpu/kernels/key_stationary/key_stationary.hpp"

#include <vector>

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "gpu/kernels/flash2/flash2.hpp"
#include "gpu/kernels/tiles/backward_lines.cuh"
#include "gpu/kernels/two_pass/two_pass.hpp"
#include "gpu/testing/call.hpp"
#include "gpu/testing/words.hpp"

namespace attest::gpu {
namespace {

TEST_CASE(
    "key_stationary: no order of lanes and blocks changes a bit of dK and dV, and nothing is "
    "wrong in any",
    "[gpu][key_stationary]") {
  std::size_t trial = 0;
  for (const char* text : testing::backward_problems()) {
    if (!attest::testing::is_turn(trial++, 2)) continue;
    INFO(text);
    testing::Call other(text);
    const EmulatedForward forward_of_other(other.forward_arguments());
    flash2_forward_emulated(forward_of_other, {});
    const EmulatedBackward two_pass(other.backward_arguments(flash2_kernel().abi()));
    two_pass_emulated(two_pass, {});
    for (const simt::Emulation& emulation : testing::checked_orders()) {
      testing::Call call(text);
      const EmulatedForward forward(call.forward_arguments());
      flash2_forward_emulated(forward, emulation);
      const EmulatedBackward backward(call.backward_arguments(key_stationary_kernel().abi()));
      CHECK(key_stationary_emulated(backward, emulation).to_string().empty());
      // The sums are those of the second of two passes, in the same order.
      CHECK(testing::bits_of({&call.dK, &call.dV}) == testing::bits_of({&other.dK, &other.dV}));
      CHECK(testing::unwritten(call.dQ.bits()) == 0);
      CHECK(testing::unwritten(testing::bits_of({&call.dK, &call.dV})) == 0);
      CHECK(call.gaps_intact());
    }
  }
}

TEST_CASE("key_stationary: without the launch that prepares, dQ is not written",
          "[gpu][key_stationary]") {
  testing::Call call("hq=2,sq=40,d=8");
  const EmulatedForward forward(call.forward_arguments());
  flash2_forward_emulated(forward, {});
  const EmulatedBackward backward(call.backward_arguments(key_stationary_kernel().abi()));
  key_stationary_keys_emulated(backward, {});
  CHECK(testing::unwritten(call.dQ.bits()) == 2 * 40 * 8);
}

TEST_CASE("key_stationary: words moved are those of the schedule and of the zeros in dQ",
          "[gpu][key_stationary][words]") {
  std::size_t trial = 0;
  for (const char* text : testing::backward_problems()) {
    if (!attest::testing::is_turn(trial++, 2)) continue;
    for (const bool dlse : {false, true}) {
      INFO(text << (dlse ? " with dLSE" : ""));
      testing::Call call(text);
      const Problem& p = call.problem;
      const EmulatedForward forward(call.forward_arguments());
      flash2_forward_emulated(forward, {});
      attest_backward_args args = call.backward_arguments(key_stationary_kernel().abi());
      if (!dlse) args.dLSE = nullptr;
      const EmulatedBackward backward(args);
      const MovedWords moved =
          testing::moved_words(backward.memory, key_stationary_emulated(backward, {}));
      const AttentionShape& shape = backward.arguments.shape;
      const std::int64_t passing = passing_rows(shape);
      // The schedule makes dQ on the first tile that its queries meet.
      const std::int64_t begun =
          p.num_heads_q * testing::visited_tiles(p, passing, 32).queries * p.head_dim_qk;
      CHECK(
          moved + testing::group_savings(p, passing, 32) ==
          testing::counted_words(key_stationary_schedule(shape) + (dlse ? ",dlse=given" : ""), p) +
              MovedWords{begun, begun});
    }
  }
}

TEST_CASE("backward: heads of 576 columns fit in shared memory, wider ones do not",
          "[gpu][key_stationary][two_pass]") {
  AttentionShape shape;
  shape.batch = shape.num_heads_q = shape.num_heads_kv = shape.seqlen_q = shape.seqlen_k = 1;
  for (const int columns : {1, 32, 128, 256, 257, 440, 576, 577}) {
    INFO(columns);
    shape.head_dim_qk = shape.head_dim_v = columns;
    CHECK(key_stationary_fits(shape, {}) == (columns <= 576));
    CHECK(two_pass_fits(shape, {}) == (columns <= 576));
  }
}

TEST_CASE("backward: grids that no device takes are refused", "[gpu][key_stationary][two_pass]") {
  AttentionShape shape;
  shape.batch = 3;
  shape.num_heads_q = shape.num_heads_kv = 70000;
  shape.seqlen_q = shape.seqlen_k = 33;
  shape.head_dim_qk = shape.head_dim_v = 8;
  CHECK(key_stationary_fits(shape, {}));
  CHECK(two_pass_fits(shape, {}));
  shape.batch = std::int64_t{1} << 15;
  CHECK_FALSE(key_stationary_fits(shape, {}));
  CHECK_FALSE(two_pass_fits(shape, {}));
}

}  // namespace
}  // namespace attest::gpu
