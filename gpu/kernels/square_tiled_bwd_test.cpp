#include "gpu/kernels/square_tiled_bwd.hpp"

#include <algorithm>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/kernels/flash2.hpp"
#include "gpu/testing/call.hpp"
#include "gpu/testing/words.hpp"

namespace attest::gpu {
namespace {

std::vector<const char*> uncapped_problems() {
  std::vector<const char*> all = testing::backward_problems();
  const auto capped = [](const char* text) { return Problem::parse(text).softcap != 0; };
  all.erase(std::remove_if(all.begin(), all.end(), capped), all.end());
  all.push_back("hq=3,sq=37,d=33,dv=129,alibi=standard");
  return all;
}

TEST_CASE(
    "square_tiled_bwd: no order of lanes and blocks changes a bit, and nothing is wrong in "
    "any",
    "[gpu][square_tiled_bwd]") {
  for (const char* text : uncapped_problems()) {
    INFO(text);
    std::vector<std::vector<std::uint32_t>> outputs;
    for (const simt::Emulation& emulation : testing::checked_orders()) {
      testing::Call call(text);
      const EmulatedForward forward(call.forward_arguments());
      flash2_forward_emulated(forward, emulation);
      EmulatedBackward emulated(call.backward_arguments(square_tiled_bwd_kernel().abi()));
      CHECK(square_tiled_bwd_kernel()
                .directions()
                .backward.run(emulated, emulation)
                .to_string()
                .empty());
      outputs.push_back(testing::bits_of({&call.dQ, &call.dK, &call.dV}));
      CHECK(std::count(outputs.back().begin(), outputs.back().end(), ~std::uint32_t{0}) == 0);
    }
    for (const auto& bits : outputs) CHECK(bits == outputs.front());
  }
}

TEST_CASE("square_tiled_bwd: words moved are those of the schedule",
          "[gpu][square_tiled_bwd][words]") {
  for (const char* text : uncapped_problems()) {
    for (const bool dlse : {false, true}) {
      INFO(text << (dlse ? " with dLSE" : ""));
      testing::Call call(text);
      const Problem& p = call.problem;
      const EmulatedForward forward(call.forward_arguments());
      flash2_forward_emulated(forward, {});
      attest_backward_args args = call.backward_arguments(square_tiled_bwd_kernel().abi());
      if (!dlse) args.dLSE = nullptr;
      EmulatedBackward emulated(args);
      const MovedWords moved = testing::moved_words(
          emulated.memory, square_tiled_bwd_kernel().directions().backward.run(emulated, {}));
      const std::int64_t partial = testing::group_savings(p, 32, 32).writes;
      CHECK(moved + MovedWords{partial, partial} ==
            testing::counted_words(square_tiled_bwd_schedule() + (dlse ? ",dlse=given" : ""), p));
    }
  }
}

TEST_CASE("square_tiled_bwd: softcap is refused before anything is written",
          "[gpu][square_tiled_bwd]") {
  testing::Call call("sq=4,d=8,softcap=3");
  const attest_kernel& kernel = square_tiled_bwd_kernel().abi();
  const attest_backward_args args = call.backward_arguments(kernel);
  CHECK(kernel.backward(kernel.self, &args) == ATTEST_UNSUPPORTED);
  for (const std::uint32_t bits : testing::bits_of({&call.dQ, &call.dK, &call.dV})) {
    CHECK(bits == ~std::uint32_t{0});
  }
}

}  // namespace
}  // namespace attest::gpu
