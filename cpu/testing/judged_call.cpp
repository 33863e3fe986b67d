#include "cpu/testing/judged_call.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/testing/catch.hpp"

namespace attest::cpu::testing {
namespace {

using attest::testing::Call;

NaiveInputs inputs_of(const Call& call) {
  const bool given = call.options.dlse == attest::testing::Dlse::given;
  return {call.Q.view(), call.K.view(), call.V.view(), call.dO.view(),
          given ? call.dLSE.view() : TensorView{}};
}

}  // namespace

NaiveForward naive_forward(const Call& call) {
  return naive_forward(call.problem, inputs_of(call));
}

NaiveBackward naive_backward(const Call& call, Deltas deltas) {
  return naive_backward(call.problem, inputs_of(call), call.O.view(), call.LSE.view(), deltas);
}

double worst_ratio(const TensorView& got, const Bounded& expected) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double worst = 0;
  attest::testing::for_each_element(got, [&](auto... index) {
    const double exact = expected.value(index...), bound = expected.bound(index...);
    const double error = std::abs(got(index...) - exact);
    if (got(index...) == exact) return;
    worst = error <= bound ? std::max(worst, error / bound) : kInfinity;
  });
  return worst;
}

void Ratios::include(const Ratios& other) {
  O = std::max(O, other.O), LSE = std::max(LSE, other.LSE), dQ = std::max(dQ, other.dQ);
  dK = std::max(dK, other.dK), dV = std::max(dV, other.dV);
}

double Ratios::worst() const { return std::max({O, LSE, dQ, dK, dV}); }

void run_both(Call& call, const attest_kernel& kernel) {
  REQUIRE(call.forward(kernel) == ATTEST_OK);
  CHECK(call.gaps_intact());
  REQUIRE(call.backward(kernel) == ATTEST_OK);
  CHECK(call.gaps_intact());
}

Ratios judge(const Call& call) {
  const NaiveForward forward = naive_forward(call);
  const NaiveBackward backward = naive_backward(call);
  return {worst_ratio(call.O.view(), forward.O), worst_ratio(call.LSE.view(), forward.LSE),
          worst_ratio(call.dQ.view(), backward.dQ), worst_ratio(call.dK.view(), backward.dK),
          worst_ratio(call.dV.view(), backward.dV)};
}

}  // namespace attest::cpu::testing
