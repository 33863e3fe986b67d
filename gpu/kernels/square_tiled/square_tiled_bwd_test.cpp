#include "gpu/kernels/square_tiled/square_tiled_bwd.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "gpu/testing/call.hpp"
#include "gpu/testing/forward_kernels.hpp"
#include "gpu/testing/words.hpp"

namespace attest::gpu {
namespace {

const std::vector<const EmulatedKernel*>& kernels() {
  static const std::vector<const EmulatedKernel*> all{&square_tiled_bwd_kernel(),
                                                      &square_tiled_bwd_tensor_core_kernel()};
  return all;
}

// Returns problems without a softcap, of each type that the kernel takes.
std::vector<std::string> uncapped_problems(const EmulatedKernel& kernel) {
  std::vector<const char*> all = testing::backward_problems();
  const auto capped = [](const char* text) { return Problem::parse(text).softcap != 0; };
  all.erase(std::remove_if(all.begin(), all.end(), capped), all.end());
  all.push_back("hq=3,sq=37,d=33,dv=129,alibi=standard");
  return testing::spellings_taken(kernel, all);
}

void run_forward(const EmulatedKernel& kernel, testing::Call& call,
                 const simt::Emulation& emulation) {
  EmulatedForward forward(call.forward_arguments(kernel.abi()));
  kernel.directions().forward.run(forward, emulation);
}

TEST_CASE(
    "square_tiled_bwd: no order of lanes and blocks changes a bit, and nothing is wrong in "
    "any",
    "[gpu][square_tiled_bwd]") {
  std::size_t trial = 0;
  for (const EmulatedKernel* kernel : kernels()) {
    for (const std::string& text : uncapped_problems(*kernel)) {
      if (!attest::testing::is_turn(trial++, 3)) continue;
      INFO(kernel->description().name << " " << text);
      std::vector<std::vector<std::uint64_t>> outputs;
      for (const simt::Emulation& emulation : testing::checked_orders()) {
        testing::Call call(text);
        run_forward(*kernel, call, emulation);
        EmulatedBackward emulated(call.backward_arguments(kernel->abi()));
        CHECK(kernel->directions().backward.run(emulated, emulation).to_string().empty());
        outputs.push_back(testing::bits_of({&call.dQ, &call.dK, &call.dV}));
        CHECK(testing::unwritten(outputs.back()) == 0);
        CHECK(call.gaps_intact());
      }
      for (const auto& bits : outputs) CHECK(bits == outputs.front());
    }
  }
}

TEST_CASE("square_tiled_bwd: words moved are those of the schedule",
          "[gpu][square_tiled_bwd][words]") {
  std::size_t trial = 0;
  for (const EmulatedKernel* kernel : kernels()) {
    for (const std::string& text : uncapped_problems(*kernel)) {
      if (!attest::testing::is_turn(trial++, 3)) continue;
      for (const bool dlse : {false, true}) {
        INFO(kernel->description().name << " " << text << (dlse ? " with dLSE" : ""));
        testing::Call call(text);
        const Problem& p = call.problem;
        run_forward(*kernel, call, {});
        attest_backward_args args = call.backward_arguments(kernel->abi());
        if (!dlse) args.dLSE = nullptr;
        EmulatedBackward emulated(args);
        const simt::LaunchReport report = kernel->directions().backward.run(emulated, {});
        const MovedWords moved = total(moved_by_tensor(emulated.memory, report.traffic, p.dtype));
        const std::int64_t partial = testing::group_savings(p, 32, 32).writes;
        CHECK(moved + MovedWords{partial, partial} ==
              testing::counted_words(square_tiled_bwd_schedule() + (dlse ? ",dlse=given" : ""), p));
      }
    }
  }
}

TEST_CASE("square_tiled_bwd: softcap is refused before anything is written",
          "[gpu][square_tiled_bwd]") {
  testing::Call call("sq=4,d=8,softcap=3");
  const attest_kernel& kernel = square_tiled_bwd_kernel().abi();
  CHECK(call.backward(kernel) == ATTEST_UNSUPPORTED);
  for (const testing::StoredTensor* output : {&call.dQ, &call.dK, &call.dV}) {
    CHECK(output->untouched());
  }
}

}  // namespace
}  // namespace attest::gpu
