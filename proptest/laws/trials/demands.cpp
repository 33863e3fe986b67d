#include "proptest/laws/trials/demands.hpp"

#include <cmath>
#include <limits>

#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

bool met(Demand demand, double sign, double value) {
  const bool infinite = std::isinf(value) && std::signbit(value) == std::signbit(sign);
  if (demand == Demand::nan) return std::isnan(value);
  if (demand == Demand::infinite) return infinite;
  return demand == Demand::none || infinite || std::isnan(value);
}

// Compares where the bits are to stay, and shows what else is not as it is asked for: elements that
// are count as equal.
Comparison compared(const Tensor& before, const Tensor& after, const Tensor& demands,
                    const Tensor& signs) {
  const auto demand = [&](auto b, auto s, auto h, auto c) {
    return static_cast<Demand>(demands(b, s, h, c));
  };
  const auto sign = [&](auto b, auto s, auto h, auto c) {
    return signs.view().rank() == 0 ? 1 : signs(b, s, h, c);
  };
  const Tensor got = mapped(after, [&](auto b, auto s, auto h, auto c) {
    const double value = after(b, s, h, c);
    const Demand asked = demand(b, s, h, c);
    return asked != Demand::same && met(asked, sign(b, s, h, c), value) ? 0 : value;
  });
  const Tensor wanted = mapped(before, [&](auto b, auto s, auto h, auto c) {
    const Demand asked = demand(b, s, h, c);
    if (asked == Demand::same) return before(b, s, h, c);
    if (met(asked, sign(b, s, h, c), after(b, s, h, c))) return 0.0;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return asked == Demand::nan ? std::numeric_limits<double>::quiet_NaN()
                                : std::copysign(kInfinity, sign(b, s, h, c));
  });
  return compare_bits(got.view(), wanted.view());
}

}  // namespace

Demands::Demands(const Problem& problem)
    : O_("O", DType::f64, problem.o_axes()),
      LSE_("LSE", DType::f64, problem.lse_axes()),
      O_sign_("sign", DType::f64, problem.o_axes()) {}

void Demands::ask(Demand demand, std::int64_t b, std::int64_t i, std::int64_t h, std::int64_t c,
                  double sign) {
  O_.set(static_cast<double>(demand), b, i, h, c);
  O_sign_.set(sign, b, i, h, c);
}

void Demands::ask_row(Demand demand, std::int64_t b, std::int64_t i, std::int64_t h) {
  for (std::int64_t c = 0; c < O_.view().extent(3); ++c) ask(demand, b, i, h, c);
  LSE_.set(static_cast<double>(demand), b, h, i);
}

LawResult Demands::judge(const KernelRun& before, const KernelRun& after,
                         const std::string& what) const {
  std::vector<Comparison> found{compared(before.O, after.O, O_, O_sign_)};
  if (before.LSE.view().rank() > 0) {
    found.push_back(compared(before.LSE, after.LSE, LSE_, Tensor()));
  }
  return judged_bits(found, what);
}

}  // namespace attest::proptest
