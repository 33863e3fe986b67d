#include "gpu/kernels/two_pass/two_pass.hpp"

#include <vector>

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "gpu/kernels/flash2/flash2.hpp"
#include "gpu/kernels/tiles/backward_lines.cuh"
#include "gpu/testing/call.hpp"
#include "gpu/testing/words.hpp"

namespace attest::gpu {
namespace {

TEST_CASE("backward: no order of lanes and blocks changes a bit, and nothing is wrong in any",
          "[gpu][two_pass]") {
  std::size_t trial = 0;
  for (const char* text : testing::backward_problems()) {
    if (!attest::testing::is_turn(trial++, 2)) continue;
    INFO(text);
    std::vector<std::vector<std::uint64_t>> outputs;
    for (const simt::Emulation& emulation : testing::checked_orders()) {
      testing::Call call(text);
      const EmulatedForward forward(call.forward_arguments());
      CHECK(flash2_forward_emulated(forward, emulation).to_string().empty());
      const EmulatedBackward backward(call.backward_arguments(flash2_kernel().abi()));
      CHECK(two_pass_emulated(backward, emulation).to_string().empty());
      outputs.push_back(testing::bits_of({&call.dQ, &call.dK, &call.dV}));
      CHECK(testing::unwritten(outputs.back()) == 0);
      CHECK(call.gaps_intact());
    }
    for (const auto& bits : outputs) CHECK(bits == outputs.front());
  }
}

TEST_CASE("backward: words moved are those of the schedule", "[gpu][two_pass][words]") {
  std::size_t trial = 0;
  for (const char* text : testing::backward_problems()) {
    if (!attest::testing::is_turn(trial++, 2)) continue;
    for (const bool dlse : {false, true}) {
      INFO(text << (dlse ? " with dLSE" : ""));
      testing::Call call(text);
      const Problem& p = call.problem;
      const EmulatedForward forward(call.forward_arguments());
      flash2_forward_emulated(forward, {});
      attest_backward_args args = call.backward_arguments(flash2_kernel().abi());
      if (!dlse) args.dLSE = nullptr;
      const EmulatedBackward backward(args);
      const MovedWords moved =
          testing::moved_words(backward.memory, two_pass_emulated(backward, {}));
      const AttentionShape& shape = backward.arguments.shape;
      const MovedWords saved = testing::group_savings(p, passing_rows(shape), 32);
      CHECK(moved + saved ==
            testing::counted_words(two_pass_schedule(shape) + (dlse ? ",dlse=given" : ""), p));
    }
  }
}

TEST_CASE("backward: head dimensions that no launch holds are refused", "[gpu][two_pass]") {
  const attest_kernel& kernel = flash2_kernel().abi();
  for (const char* text : {"sq=4,d=800,dv=8", "sq=4,d=8,dv=800", "sq=4,d=577,dv=8"}) {
    INFO(text);
    testing::Call call(text);
    CHECK(call.backward(kernel) == ATTEST_UNSUPPORTED);
  }
}

}  // namespace
}  // namespace attest::gpu
