#include "cpu/testing/loss.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace attest::cpu::testing {
namespace {

constexpr double kRoundoff = 0x1p-24, kExpError = 0x1p-22, kSmallest = 0x1p-126;

double gamma(double operations) { return operations * kRoundoff / (1 - operations * kRoundoff); }

// A number and the bound of the error float32 makes in it.
struct Number {
  double value = 0, error = 0;
  double size() const { return std::abs(value) + error; }
};

Number times(const Number& a, const Number& b) {
  return {a.value * b.value, a.error * b.size() + std::abs(a.value) * b.error};
}

// Sum of n products with at most `roundings` roundings on a term.
template <typename Left, typename Right>
Number sum_of(std::int64_t n, double roundings, const Left& left, const Right& right) {
  Number sum;
  double size = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const Number a = left(k), b = right(k), term = times(a, b);
    sum.value += term.value;
    sum.error += term.error;
    size += a.size() * b.size();
  }
  sum.error += gamma(roundings) * size + static_cast<double>(n) * kSmallest;
  return sum;
}

struct Table {
  std::int64_t columns;
  std::vector<Number> numbers;
  Table(std::int64_t rows, std::int64_t n)
      : columns(n), numbers(static_cast<std::size_t>(rows * n)) {}
  Number& operator()(std::int64_t i, std::int64_t j) {
    return numbers[static_cast<std::size_t>(i * columns + j)];
  }
};

}  // namespace

LossExpected loss_closed_form(const attest::testing::LossCall& call, ScoreProduct product) {
  const std::int64_t n = call.problem.seqlen_q, d = call.problem.head_dim_qk;
  const auto input = [](const attest::testing::StoredTensor& t, std::int64_t i, std::int64_t j) {
    return Number{t(i, j), 0};
  };
  const auto terms = static_cast<double>(d), keys = static_cast<double>(n);
  Table QX(n, d), h(n, d), f(n, n), fh(n, d), c(n, d), p(n, n), W(n, d), G(n, d);
  std::vector<Number> delta(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t k = 0; k < d; ++k) {
      QX(i, k) = sum_of(
          d, terms + 1, [&](auto l) { return input(call.A1, i, l); },
          [&](auto l) { return input(call.X, l, k); });
      h(i, k) = sum_of(
          d, terms + 1, [&](auto l) { return input(call.A3, i, l); },
          [&](auto l) { return input(call.Y, l, k); });
    }
  }
  Table XA2(n, d);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t k = 0; k < d; ++k) {
      XA2(j, k) = sum_of(
          d, terms + 1, [&](auto l) { return input(call.X, k, l); },
          [&](auto l) { return input(call.A2, j, l); });
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    double maximum = -HUGE_VAL, error = 0, size = 0, sum = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      f(i, j) = sum_of(
          d, terms + 1, [&](auto l) { return QX(i, l); },
          [&](auto l) { return input(call.A2, j, l); });
      maximum = std::max(maximum, f(i, j).value);
      error = std::max(error, f(i, j).error);
      size = std::max(size, std::abs(f(i, j).value));
    }
    for (std::int64_t j = 0; j < n; ++j) sum += std::exp(f(i, j).value - maximum);
    // The running maximum changes at most n times; each change rounds a difference of scores.
    const double log_error =
        error + (keys + 1) * (2 * kRoundoff * (size + error) + kExpError + 2 * kRoundoff);
    const double sum_error = std::expm1(log_error) + gamma(keys + 16);
    const double lse = maximum + std::log(sum);
    const double lse_error = 2 * sum_error + gamma(4) * (std::abs(maximum) + std::abs(lse) + 1);
    for (std::int64_t j = 0; j < n; ++j) {
      Number s = f(i, j);
      if (product == ScoreProduct::keys_first) {
        s.error = sum_of(
                      d, terms + 1, [&](auto l) { return input(call.A1, i, l); },
                      [&](auto l) { return XA2(j, l); })
                      .error;
      }
      const double weight = std::exp(s.value - lse);
      f(i, j) = {weight, weight * std::expm1(s.error + lse_error + kExpError +
                                             2 * kRoundoff * (s.size() + std::abs(lse))) +
                             kSmallest};
    }
    Number& row_delta = delta[static_cast<std::size_t>(i)];
    for (std::int64_t k = 0; k < d; ++k) {
      fh(i, k) = sum_of(
          n, 2 * keys + 3,
          [&](auto j) {
            return Number{f(i, j).value, f(i, j).value * std::expm1(3 * sum_error) + kSmallest};
          },
          [&](auto j) { return h(j, k); });
      c(i, k) = {fh(i, k).value - call.E(i, k), fh(i, k).error};
      c(i, k).error += kRoundoff * c(i, k).size();
    }
    row_delta = sum_of(
        d, terms + 17, [&](auto k) { return c(i, k); }, [&](auto k) { return fh(i, k); });
    for (std::int64_t j = 0; j < n; ++j) {
      const Number q = sum_of(
          d, terms + 1, [&](auto k) { return c(i, k); }, [&](auto k) { return h(j, k); });
      Number inner{q.value - row_delta.value, q.error + row_delta.error};
      inner.error += kRoundoff * inner.size();
      p(i, j) = times(f(i, j), inner);
      p(i, j).error += gamma(2) * f(i, j).size() * inner.size() + kSmallest;
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t k = 0; k < d; ++k) {
      W(i, k) = sum_of(
          n, keys + 1, [&](auto j) { return p(i, j); },
          [&](auto j) { return input(call.A2, j, k); });
      G(i, k) = sum_of(
          n, keys + 1, [&](auto j) { return f(j, i); }, [&](auto j) { return c(j, k); });
    }
  }
  const auto square = [&] {
    const std::vector<Axis> axes{{"rows", d, 0}, {"columns", d, 0}};
    return Bounded{Tensor("dX", DType::f64, axes), Tensor("dX", DType::f64, axes)};
  };
  LossExpected expected{square(), square()};
  for (std::int64_t k = 0; k < d; ++k) {
    for (std::int64_t l = 0; l < d; ++l) {
      const Number dX = sum_of(
          n, keys + 2, [&](auto i) { return input(call.A1, i, k); },
          [&](auto i) { return W(i, l); });
      const Number dY = sum_of(
          n, keys + 2, [&](auto i) { return input(call.A3, i, k); },
          [&](auto i) { return G(i, l); });
      expected.dX.value.set(dX.value, k, l);
      expected.dX.bound.set(dX.error, k, l);
      expected.dY.value.set(dY.value, k, l);
      expected.dY.bound.set(dY.error, k, l);
    }
  }
  return expected;
}

}  // namespace attest::cpu::testing
