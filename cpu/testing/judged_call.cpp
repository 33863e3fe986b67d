#include "cpu/testing/judged_call.hpp"

#include <algorithm>

#include "core/testing/catch.hpp"
#include "cpu/testing/naive.hpp"

namespace attest::cpu::testing {

void Ratios::include(const Ratios& other) {
  O = std::max(O, other.O), LSE = std::max(LSE, other.LSE), dQ = std::max(dQ, other.dQ);
  dK = std::max(dK, other.dK), dV = std::max(dV, other.dV);
}

double Ratios::worst() const { return std::max({O, LSE, dQ, dK, dV}); }

void run_both(Call& call, const attest_kernel& kernel) {
  REQUIRE(call.forward(kernel) == ATTEST_OK);
  CHECK(call.workspace_intact());
  REQUIRE(call.backward(kernel) == ATTEST_OK);
  CHECK(call.workspace_intact());
}

Ratios judge(const Call& call) {
  const NaiveForward forward = naive_forward(call.problem, call.inputs());
  const NaiveBackward backward =
      naive_backward(call.problem, call.inputs(), call.O.view(), call.LSE.view());
  return {worst_ratio(call.O.view(), forward.O), worst_ratio(call.LSE.view(), forward.LSE),
          worst_ratio(call.dQ.view(), backward.dQ), worst_ratio(call.dK.view(), backward.dK),
          worst_ratio(call.dV.view(), backward.dV)};
}

}  // namespace attest::cpu::testing
