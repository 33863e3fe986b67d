#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/kernels/kernels.hpp"
#include "gpu/kernels/two_pass/two_pass_tensor_core.hpp"
#include "gpu/testing/call.hpp"
#include "gpu/testing/forward_kernels.hpp"
#include "gpu/testing/words.hpp"

namespace attest::gpu {
namespace {

using testing::Call;

std::vector<std::string> spelled_problems() {
  return testing::spellings_taken(key_stationary_tensor_core_kernel(),
                                  testing::backward_problems());
}

void run_forward(const Call& call) {
  EmulatedForward forward(call.forward_arguments());
  flash2_tensor_core_kernel().directions().forward.run(forward, {});
}

simt::LaunchReport run(EmulatedBackward& call, const simt::Emulation& emulation) {
  return key_stationary_tensor_core_kernel().directions().backward.run(call, emulation);
}

TEST_CASE(
    "tensor cores, key_stationary: dK and dV are those of two passes in every order, and nothing "
    "is wrong in any",
    "[gpu][tensor_core][key_stationary]") {
  for (const std::string& text : spelled_problems()) {
    INFO(text);
    Call other(text);
    run_forward(other);
    EmulatedBackward two_pass(other.backward_arguments(flash2_tensor_core_kernel().abi()));
    two_pass_tensor_core_emulated(two_pass, {});
    for (const simt::Emulation& emulation : testing::checked_orders()) {
      Call call(text);
      run_forward(call);
      EmulatedBackward backward(call.backward_arguments(key_stationary_tensor_core_kernel().abi()));
      CHECK(run(backward, emulation).to_string().empty());
      CHECK(testing::bits_of({&call.dK, &call.dV}) == testing::bits_of({&other.dK, &other.dV}));
      CHECK(testing::unwritten(call.dQ.bits()) == 0);
      CHECK(call.gaps_intact());
    }
  }
}

TEST_CASE("tensor cores, key_stationary: words moved are those of the schedule and of dQ's sums",
          "[gpu][tensor_core][key_stationary][words]") {
  for (const std::string& text : spelled_problems()) {
    for (const bool dlse : {false, true}) {
      INFO(text << (dlse ? " with dLSE" : ""));
      Call call(text);
      const Problem& p = call.problem;
      run_forward(call);
      attest_backward_args args =
          call.backward_arguments(key_stationary_tensor_core_kernel().abi());
      if (!dlse) args.dLSE = nullptr;
      EmulatedBackward backward(args);
      const simt::LaunchReport report = run(backward, {});
      const MovedWords moved = total(moved_by_tensor(backward.memory, report.traffic, p.dtype));
      // The schedule makes dQ on the first tile that its queries meet.
      const std::int64_t begun =
          p.num_heads_q * testing::visited_tiles(p, 32, 64).queries * p.head_dim_qk;
      const std::int64_t rounded = backward.delta_rows() * p.head_dim_qk;
      CHECK(moved + testing::group_savings(p, 32, 64) ==
            testing::counted_words(
                std::string("key_stationary:bq=32,bk=64") + (dlse ? ",dlse=given" : ""), p) +
                MovedWords{begun + rounded, begun + rounded});
    }
  }
}

}  // namespace
}  // namespace attest::gpu
