// Errors that many summands share: a random walk of independent ones would be shorter.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>

#include "core/testing/catch.hpp"
#include "reference/bounds/bounds.hpp"
#include "reference/bounds/steps/roundoff.hpp"
#include "reference/bounds/steps/weights/alike_rows.hpp"
#include "reference/testing/setting.hpp"

namespace attest::reference {
namespace {

// Errors of a kernel that is exact but for one operand, over the probabilistic bounds of its
// contract: the largest of each output.
struct Worst {
  double O = 0, LSE = 0, dQ = 0;
};

double worst(const Tensor& got, const Tensor& exact, const ErrorBound& bound) {
  double most = 0;
  const TensorView& view = exact.view();
  const bool rows = view.rank() == 3;  // of LSE
  for (std::int64_t i = 0; i < view.extent(rows ? 2 : 1); ++i) {
    for (std::int64_t c = 0; c < (rows ? 1 : view.extent(3)); ++c) {
      const auto at = [&](const Tensor& of) { return rows ? of(0, 0, i) : of(0, i, 0, c); };
      most = std::max(most, std::abs(at(got) - at(exact)) / at(bound.probabilistic));
    }
  }
  return most;
}

// Compares exact results on `rounded` operands with the bounds of `in`.
Worst worst_of(const Setting& in, const Setting& rounded, const Numerics& numerics) {
  const auto backward_of = [&](const Setting& one) {
    return backward(in.problem, one.Q.view(), one.K.view(), in.V.view(), {in.dO.view(), nullptr});
  };
  const auto forward_of = [&](const Setting& one) {
    return forward(in.problem, {}, one.Q.view(), one.K.view(), in.V.view());
  };
  const Forward exact = forward_of(in), got = forward_of(rounded);
  const Backward gradients = backward_of(in), got_gradients = backward_of(rounded);
  const ForwardBounds of_forward =
      forward_bounds(in.problem, {}, numerics, in.Q.view(), in.K.view(), in.V.view(), exact);
  const BackwardBounds of_backward =
      backward_bounds(in.problem, {}, numerics, in.Q.view(), in.K.view(), in.V.view(),
                      {in.dO.view(), nullptr}, {got.O.view(), got.LSE.view()}, exact, gradients);
  return {worst(got.O, exact.O, of_forward.O), worst(got.LSE, exact.LSE, of_forward.LSE),
          worst(got_gradients.dQ, gradients.dQ, of_backward.dQ)};
}

// Every key of a row meets the same rounded q: four thousand keys do not average its error out.
TEST_CASE("a row's keys share what its Q errs", "[reference]") {
  Setting in("sq=1,sk=4096,d=1,scale=1", 1, 1, 5);
  in.Q.set(1, 0, 0, 0, 0);
  for (std::int64_t j = 0; j < 4096; ++j) {
    in.K.set(j % 2 == 0 ? 0 : 1 + 0x1p-12 * static_cast<double>(j), 0, j, 0, 0);
    in.V.set(in.K(0, j, 0, 0), 0, j, 0, 0);
  }
  for (const bool scaled : {true, false}) {
    attest_numerics declared{};
    (scaled ? declared.scaled_q_roundoff : declared.input_roundoff) = 0x1p-9;
    Setting rounded = in;
    rounded.Q.set(1 + 0x1p-9, 0, 0, 0, 0);
    const Worst found = worst_of(in, rounded, resolve(declared, DType::f32));
    for (const double ratio : {found.O, found.LSE, found.dQ}) {
      CHECK(ratio <= 1);
      CHECK(ratio > 0);
    }
  }
}

// Every row that sees a key meets the same rounded k, here in a backward pass whose forward pass
// was exact.
TEST_CASE("a key's rows share what its K errs", "[reference]") {
  constexpr std::int64_t kRows = 4096;
  constexpr double kRoundoff = 0x1p-9;
  Setting in("sq=4096,sk=2,d=1,scale=1", 1, 1, 5);
  in.K.set(1, 0, 0, 0, 0);
  in.K.set(-1, 0, 1, 0, 0);
  in.V.set(1, 0, 0, 0, 0);
  in.V.set(-1, 0, 1, 0, 0);
  for (std::int64_t i = 0; i < kRows; ++i) {
    in.Q.set(1 + 0x1p-12 * static_cast<double>(i), 0, i, 0, 0);
    in.dO.set(1, 0, i, 0, 0);
  }
  const Forward exact = forward(in.problem, {}, in.Q.view(), in.K.view(), in.V.view());
  const Backward gradients =
      backward(in.problem, in.Q.view(), in.K.view(), in.V.view(), {in.dO.view(), nullptr});
  double dV = 0, dK = 0;  // of the first key, from its rounded k
  for (std::int64_t i = 0; i < kRows; ++i) {
    const double q = in.Q(0, i, 0, 0), P = std::exp(q * (1 + kRoundoff) - exact.LSE(0, 0, i));
    dV += P;
    dK += P * (1 - exact.O(0, i, 0, 0)) * q;
  }
  attest_numerics declared{};
  declared.input_roundoff = kRoundoff;
  const BackwardBounds bounds = backward_bounds(
      in.problem, {}, resolve(declared, DType::f32), in.Q.view(), in.K.view(), in.V.view(),
      {in.dO.view(), nullptr}, {exact.O.view(), exact.LSE.view()}, exact, gradients);
  CHECK(std::abs(dV - gradients.dV(0, 0, 0, 0)) <= bounds.dV.probabilistic(0, 0, 0, 0));
  CHECK(std::abs(dK - gradients.dK(0, 0, 0, 0)) <= bounds.dK.probabilistic(0, 0, 0, 0));
}

// A backward pass that is exact on what a forward pass stored: LSE, or O, too large in every row by
// the same amount.
TEST_CASE("rows whose stored results err alike do not average that out", "[reference]") {
  constexpr std::int64_t kRows = 4096;
  constexpr double kShift = 0x1p-12;
  Setting in("sq=4096,sk=2,d=1,scale=1", 1, 1, 5);
  for (std::int64_t i = 0; i < kRows; ++i) {
    in.Q.set(std::abs(in.Q(0, i, 0, 0)), 0, i, 0, 0);
    in.dO.set(1, 0, i, 0, 0);
  }
  const Forward exact = forward(in.problem, {}, in.Q.view(), in.K.view(), in.V.view());
  const Backward gradients =
      backward(in.problem, in.Q.view(), in.K.view(), in.V.view(), {in.dO.view(), nullptr});
  Tensor LSE("LSE", DType::f64, in.problem.lse_axes()), O("O", DType::f64, in.problem.o_axes());
  for (std::int64_t i = 0; i < kRows; ++i) {
    LSE.set(exact.LSE(0, 0, i) + kShift, 0, 0, i);
    O.set(exact.O(0, i, 0, 0) + kShift, 0, i, 0, 0);
  }
  const auto bounds_with = [&](const Tensor& stored_O, const Tensor& stored_LSE) {
    return backward_bounds(in.problem, {}, resolve({}, DType::f32), in.Q.view(), in.K.view(),
                           in.V.view(), {in.dO.view(), nullptr},
                           {stored_O.view(), stored_LSE.view()}, exact, gradients);
  };
  const BackwardBounds of_LSE = bounds_with(exact.O, LSE), of_O = bounds_with(O, exact.LSE);
  for (std::int64_t j = 0; j < 2; ++j) {
    // P, and with it every term of dV and dK, falls by the same factor.
    const double fall = -std::expm1(-kShift), dV = std::abs(gradients.dV(0, j, 0, 0));
    CHECK(fall * dV <= of_LSE.dV.probabilistic(0, j, 0, 0));
    CHECK(fall * std::abs(gradients.dK(0, j, 0, 0)) <= of_LSE.dK.probabilistic(0, j, 0, 0));
    // Delta is too large by the shift in every row.
    double dK = 0;
    for (std::int64_t i = 0; i < kRows; ++i) {
      const double q = in.Q(0, i, 0, 0), s = q * in.K(0, j, 0, 0);
      dK += std::exp(s - exact.LSE(0, 0, i)) * kShift * q;
    }
    CHECK(dK <= of_O.dK.probabilistic(0, j, 0, 0));
    // Both are known, and nothing is added for their signs.
    CHECK(of_LSE.dV.probabilistic(0, j, 0, 0) < 2 * fall * dV);
    CHECK(of_O.dK.probabilistic(0, j, 0, 0) < 2 * dK);
  }
}

// A backward pass that is exact on an LSE at the very end of its bound in every row, and that shows
// it to nobody. All terms of a sum have one sign, so that nothing averages out.
TEST_CASE("an LSE that nobody saw may err alike in all rows", "[reference]") {
  constexpr std::int64_t kRows = 4096;
  Setting in("sq=4096,sk=2,d=1,scale=1", 1, 1, 5);
  for (std::int64_t i = 0; i < kRows; ++i) {
    in.Q.set(1 + 0x1p-12 * static_cast<double>(i), 0, i, 0, 0);
    in.dO.set(1, 0, i, 0, 0);
  }
  for (std::int64_t j = 0; j < 2; ++j) {
    in.K.set(j == 0 ? 1 : -1, 0, j, 0, 0);
    in.V.set(j == 0 ? 1 : -1, 0, j, 0, 0);
  }
  const TensorView &Q = in.Q.view(), &K = in.K.view(), &V = in.V.view();
  const Forward exact = forward(in.problem, {}, Q, K, V);
  const Backward gradients = backward(in.problem, Q, K, V, {in.dO.view(), nullptr});
  for (const LseBase base : {LseBase::e, LseBase::two}) {
    const Conventions conventions{EmptyRow::zero_neg_inf, base};
    attest_numerics declared{};
    declared.scaled_q_roundoff = 0x1p-9;
    declared.lse_base_two = base == LseBase::two ? 1 : 0;
    const Numerics numerics = resolve(declared, DType::f32);
    const ErrorBound LSE = forward_bounds(in.problem, conventions, numerics, Q, K, V, exact).LSE;
    const Forward own = forward(in.problem, conventions, Q, K, V);
    const auto bounds_with = [&](std::optional<TensorView> stored) {
      return backward_bounds(in.problem, conventions, numerics, Q, K, V, {in.dO.view(), nullptr},
                             {exact.O.view(), stored}, exact, gradients);
    };
    const BackwardBounds unseen = bounds_with(std::nullopt), seen = bounds_with(own.LSE.view());
    for (Tensor ErrorBound::*end : {&ErrorBound::deterministic, &ErrorBound::probabilistic}) {
      const double unit = base == LseBase::two ? std::numbers::ln2 : 1;
      const auto rise = [&](std::int64_t i) { return std::expm1(unit * (LSE.*end)(0, 0, i)); };
      // The error of such a pass is within the bound, and about all that the bound grew by.
      const auto check = [&](double error, const ErrorBound& with, const ErrorBound& without,
                             std::int64_t row) {
        CHECK(error > 0);
        CHECK(error <= (without.*end)(0, row, 0, 0));
        CHECK((without.*end)(0, row, 0, 0) - (with.*end)(0, row, 0, 0) < 1.25 * error);
      };
      double linear_dV = 0, squares_dV = 0;
      for (std::int64_t j = 0; j < 2; ++j) {
        double dV = 0, dK = 0;
        for (std::int64_t i = 0; i < kRows; ++i) {
          const double q = in.Q(0, i, 0, 0);
          const double P = std::exp(q * in.K(0, j, 0, 0) - exact.LSE(0, 0, i));
          dV += P * rise(i);
          dK += P * rise(i) * (in.V(0, j, 0, 0) - exact.O(0, i, 0, 0)) * q;
          if (j == 0) squares_dV += std::pow(P * rise(i), 2);
        }
        if (j == 0) linear_dV = dV;
        check(dV, seen.dV, unseen.dV, j);
        check(std::abs(dK), seen.dK, unseen.dK, j);
      }
      for (std::int64_t i = 0; i < kRows; i += 512) {
        check(rise(i) * std::abs(gradients.dQ(0, i, 0, 0)), seen.dQ, unseen.dQ, i);
      }
      // As an error that is independent from row to row it would be accused.
      if (end == &ErrorBound::deterministic) continue;
      CHECK(linear_dV > (seen.dV.*end)(0, 0, 0, 0) + kLambda * std::sqrt(squares_dV));
    }
  }
}

// A loss that sums O has the same dO in all rows, and so the same rounding of a key's dP.
TEST_CASE("rows with the same dO share what dP errs", "[reference]") {
  constexpr std::int64_t kRows = 512, kKeys = 32, kColumns = 64;
  Setting in("sq=512,sk=32,d=8,dv=64,scale=1", 1, 1, 7);
  for (std::int64_t i = 0; i < kRows; ++i) {
    for (std::int64_t c = 0; c < 8; ++c) in.Q.set(1 + 0.25 * in.Q(0, i, 0, c), 0, i, 0, c);
    for (std::int64_t c = 0; c < kColumns; ++c) in.dO.set(1, 0, i, 0, c);
  }
  for (std::int64_t j = 0; j < kKeys; ++j) {
    for (std::int64_t c = 0; c < kColumns; ++c) {
      const double v = 1 + 0.01 * std::abs(std::sin(in.V(0, j, 0, c)));
      in.V.set(static_cast<float>(v), 0, j, 0, c);
    }
  }
  const Forward exact = forward(in.problem, {}, in.Q.view(), in.K.view(), in.V.view());
  const Backward gradients =
      backward(in.problem, in.Q.view(), in.K.view(), in.V.view(), {in.dO.view(), nullptr});
  const BackwardBounds bounds = backward_bounds(
      in.problem, {}, resolve({}, DType::f32), in.Q.view(), in.K.view(), in.V.view(),
      {in.dO.view(), nullptr}, {exact.O.view(), exact.LSE.view()}, exact, gradients);
  double squares = 0;  // errors over sigma, of dK from dP summed in float32, in order
  for (std::int64_t j = 0; j < kKeys; ++j) {
    float sum = 0;
    double dP = 0;
    for (std::int64_t c = 0; c < kColumns; ++c) {
      sum += static_cast<float>(in.V(0, j, 0, c));
      dP += in.V(0, j, 0, c);
    }
    for (std::int64_t l = 0; l < 8; ++l) {
      double error = 0;
      for (std::int64_t i = 0; i < kRows; ++i) {
        double s = 0;
        for (std::int64_t c = 0; c < 8; ++c) s += in.Q(0, i, 0, c) * in.K(0, j, 0, c);
        error += std::exp(s - exact.LSE(0, 0, i)) * (sum - dP) * in.Q(0, i, 0, l);
      }
      CHECK(std::abs(error) <= bounds.dK.probabilistic(0, j, 0, l));
      squares += std::pow(error / bounds.dK.sigma(0, j, 0, l), 2);
    }
  }
  CHECK(squares > 0);
  CHECK(squares <= kKeys * 8);
}

TEST_CASE("alike are the rows of the one that occurs most often, and of its negative",
          "[reference]") {
  Matrix rows(7, 2);
  rows << 1, 2, 0, 0, -1, -2, 3, 4, 1, 2, 3, 4, 0, 0;
  Vector alike(7);
  alike << 1, 0, -1, 0, 1, 0, 0;
  CHECK(alike_rows(rows) == alike);
  rows << 1, 2, 0, 0, 2, 1, 3, 4, 1, -2, 4, 3, 0, 0;
  CHECK(alike_rows(rows).size() == 0);
}

TEST_CASE("repeated are the rows that another equals, or is the negative of", "[reference]") {
  Matrix rows(7, 2);
  rows << 1, 2, 0, 0, -1, -2, 3, 4, 5, 6, 3, 4, 0, 0;
  Vector repeated(7);
  repeated << 1, 0, 1, 1, 0, 1, 0;
  CHECK(repeated_rows(rows) == repeated);
  CHECK(repeated_rows(Matrix::Zero(3, 2)) == Vector::Zero(3));
  CHECK(alike_rows(Matrix::Zero(3, 2)).size() == 0);
}

}  // namespace
}  // namespace attest::reference
