#include "gpu/kernels/two_pass/two_pass_tensor_core.hpp"

#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/kernels/kernels.hpp"
#include "gpu/testing/call.hpp"
#include "gpu/testing/forward_kernels.hpp"
#include "gpu/testing/words.hpp"

namespace attest::gpu {
namespace {

using testing::Call;

void run_forward(const Call& call) {
  EmulatedForward forward(call.forward_arguments());
  flash2_tensor_core_kernel().directions().forward.run(forward, {});
}

std::vector<std::string> spelled_problems() {
  return testing::spellings_taken(flash2_tensor_core_kernel(), testing::backward_problems());
}

TEST_CASE("tensor cores, backward: no order changes a bit, and nothing is wrong in any",
          "[gpu][tensor_core]") {
  for (const std::string& text : spelled_problems()) {
    INFO(text);
    std::vector<std::vector<std::uint64_t>> outputs;
    for (const simt::Emulation& emulation : testing::checked_orders()) {
      Call call(text);
      run_forward(call);
      EmulatedBackward backward(call.backward_arguments(flash2_tensor_core_kernel().abi()));
      CHECK(two_pass_tensor_core_emulated(backward, emulation).to_string().empty());
      outputs.push_back(testing::bits_of({&call.dQ, &call.dK, &call.dV}));
      CHECK(testing::unwritten(outputs.back()) == 0);
      CHECK(call.gaps_intact());
    }
    for (const auto& bits : outputs) CHECK(bits == outputs.front());
  }
}

TEST_CASE("tensor cores, backward: words moved are those of the schedule",
          "[gpu][tensor_core][words]") {
  for (const std::string& text : spelled_problems()) {
    for (const bool dlse : {false, true}) {
      INFO(text << (dlse ? " with dLSE" : ""));
      Call call(text);
      run_forward(call);
      attest_backward_args args = call.backward_arguments(flash2_tensor_core_kernel().abi());
      if (!dlse) args.dLSE = nullptr;
      EmulatedBackward backward(args);
      const simt::LaunchReport report = two_pass_tensor_core_emulated(backward, {});
      const MovedWords moved =
          total(moved_by_tensor(backward.memory, report.traffic, call.problem.dtype));
      const MovedWords saved = testing::group_savings(call.problem, 32, 64);
      const auto counted = [&](const char* tiles) {
        return testing::counted_words(
            std::string("two_pass:") + tiles + (dlse ? ",dlse=given" : ""), call.problem);
      };
      CHECK(moved + saved == counted("bq=64,bk=32,cq=32,ck=64"));
      if (call.problem.seqlen_q > 64) CHECK(!(moved + saved == counted("bq=32,bk=32,cq=32,ck=64")));
    }
  }
}

}  // namespace
}  // namespace attest::gpu
