#include "gpu/kernels/two_pass_tensor_core.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/kernels/flash2_tensor_core.hpp"
#include "gpu/testing/broken_tensor_core.hpp"
#include "gpu/testing/call.hpp"
#include "gpu/testing/forward_kernels.hpp"
#include "gpu/testing/words.hpp"

namespace attest::gpu {
namespace {

using testing::Call;
using testing::TensorCoreBug;
using Run = std::function<simt::LaunchReport(EmulatedBackward&)>;

const std::vector<const EmulatedKernel*>& kernels() {
  static const std::vector<const EmulatedKernel*> all{&flash2_tensor_core_kernel(),
                                                      &flash2_tensor_core_f16_kernel()};
  return all;
}

void run_forward(const EmulatedKernel& kernel, const Call& call) {
  EmulatedForward forward(call.forward_arguments());
  kernel.directions().forward.run(forward, {});
}

TEST_CASE("tensor cores, backward: no order changes a bit, and nothing is wrong in any",
          "[gpu][tensor_core]") {
  for (const EmulatedKernel* kernel : kernels()) {
    for (const char* text : testing::taken(*kernel, testing::backward_problems())) {
      INFO(kernel->description().name << " " << text);
      std::vector<std::vector<std::uint32_t>> outputs;
      for (const simt::Emulation& emulation : testing::checked_orders()) {
        Call call(testing::spelled_for(kernel->abi(), text));
        run_forward(*kernel, call);
        EmulatedBackward backward(call.backward_arguments());
        CHECK(two_pass_tensor_core_emulated(backward, emulation).to_string().empty());
        outputs.push_back(testing::bits_of({&call.dQ, &call.dK, &call.dV}));
        CHECK(std::count(outputs.back().begin(), outputs.back().end(), ~std::uint32_t{0}) == 0);
      }
      for (const auto& bits : outputs) CHECK(bits == outputs.front());
    }
  }
}

TEST_CASE("tensor cores, backward: words moved are those of the schedule",
          "[gpu][tensor_core][words]") {
  const EmulatedKernel& kernel = flash2_tensor_core_kernel();
  for (const char* text : testing::taken(kernel, testing::backward_problems())) {
    for (const bool dlse : {false, true}) {
      INFO(text << (dlse ? " with dLSE" : ""));
      Call call(testing::spelled_for(kernel.abi(), text));
      run_forward(kernel, call);
      attest_backward_args args = call.backward_arguments();
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

/// Each query has one key whose score is 128 above all others, so that P is 0 or 1, and dS is its
/// dLSE: gradients are sums without rounding. The number of elements that differ from them.
int wrong(const EmulatedKernel& kernel, std::int64_t queries, const Run& run) {
  const bool bf16 = kernel.takes(ATTEST_BF16);
  Call call("sq=" + std::to_string(queries) +
            ",sk=75,d=8,dv=24,scale=1,dtype=" + (bf16 ? "bf16" : "f16"));
  const auto chosen = [](std::int64_t query) { return query * 31 % 40; };
  const auto code = [](std::int64_t key, std::int64_t bit) {
    return bit == 7 ? 0 : (key >> bit & 1) != 0 ? 1 : -1;
  };
  const auto given = [](std::int64_t query, std::int64_t column) {
    return (query * 5 + column * 3) % 4;
  };
  // As many bits as the type has.
  const auto dLSE = [&](std::int64_t query, std::int64_t) {
    return static_cast<double>(1 + query % 2) * (bf16 ? 1 + 0x1p-6 : 1 + 0x1p-9);
  };
  call.Q.fill_rows([&](auto i, auto bit) { return 64 * code(chosen(i), bit); });
  call.K.fill_rows(code);
  call.V.fill_rows([](auto key, auto column) { return (key * 7 + column * 13) % 8; });
  call.dO.fill_rows(given);
  call.dLSE.fill_rows(dLSE);
  run_forward(kernel, call);
  EmulatedBackward backward(call.backward_arguments());
  run(backward);

  const auto over_queries = [&](std::int64_t key, const auto& term) {
    double sum = 0;
    for (std::int64_t i = 0; i < queries; ++i) sum += chosen(i) == key ? term(i) : 0.0;
    return sum;
  };
  testing::Values dQ("dQ", call.problem.dtype, call.problem.q_axes(), attest::Strides::packed),
      dK("dK", call.problem.dtype, call.problem.k_axes(), attest::Strides::packed),
      dV("dV", call.problem.dtype, call.problem.v_axes(), attest::Strides::packed);
  dQ.fill_rows([&](auto i, auto bit) { return dLSE(i, 0) * code(chosen(i), bit); });
  dK.fill_rows([&](auto key, auto bit) {
    return over_queries(key, [&](auto i) { return dLSE(i, 0) * 64 * code(key, bit); });
  });
  dV.fill_rows([&](auto key, auto column) {
    return over_queries(key, [&](auto i) { return static_cast<double>(given(i, column)); });
  });
  const std::vector<std::uint32_t> is = testing::bits_of({&call.dQ, &call.dK, &call.dV}),
                                   should = testing::bits_of({&dQ, &dK, &dV});
  int count = 0;
  for (std::size_t k = 0; k < is.size(); ++k) count += is[k] != should[k] ? 1 : 0;
  return count;
}

TEST_CASE("tensor cores, backward: where one key counts, gradients are exact",
          "[gpu][tensor_core]") {
  // The second leaves a tile of queries in part empty that no tile was in before.
  for (const std::int64_t queries : {70, 20}) {
    for (const EmulatedKernel* kernel : kernels()) {
      INFO(kernel->description().name << " " << queries);
      CHECK(wrong(*kernel, queries,
                  [](auto& call) { return two_pass_tensor_core_emulated(call, {}); }) == 0);
    }
    const auto wrong_with = [queries](TensorCoreBug bug) {
      return wrong(flash2_tensor_core_f16_kernel(), queries,
                   [bug](auto& call) { return two_pass_tensor_core_with(bug, call, {}); });
    };
    CHECK(wrong_with(TensorCoreBug::none) == 0);
    CHECK(wrong_with(TensorCoreBug::swaps_fragment) > 0);
    CHECK(wrong_with(TensorCoreBug::waits_for_too_few) > 0);
    CHECK(wrong_with(TensorCoreBug::casts_twice) > 0);
    if (queries == 20) CHECK(wrong_with(TensorCoreBug::sees_past_the_end) > 0);
  }
}

}  // namespace
}  // namespace attest::gpu
