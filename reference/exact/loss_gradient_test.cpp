#include "reference/exact/loss_gradient.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "reference/bounds/steps/float64_error.hpp"
#include "reference/testing/setting.hpp"

namespace attest::reference {
namespace {

using oracle::Array;
using oracle::Real;

struct LossSetting {
  std::int64_t n, d;
  Tensor A1, A2, A3, E, X, Y;

  LossSetting(std::int64_t seqlen, std::int64_t head_dim, double factor, std::uint64_t seed)
      : n(seqlen),
        d(head_dim),
        A1(random_tensor("A1", tall(), seed, factor)),
        A2(random_tensor("A2", tall(), seed + 1, 1)),
        A3(random_tensor("A3", tall(), seed + 2, 1)),
        E(random_tensor("E", tall(), seed + 3, 1)),
        X(random_tensor("X", square(), seed + 4, 1)),
        Y(random_tensor("Y", square(), seed + 5, 1)) {}

  std::vector<Axis> tall() const { return {{"seqlen", n, 0}, {"head_dim", d, 0}}; }
  std::vector<Axis> square() const { return {{"head_dim", d, 0}, {"head_dim", d, 0}}; }
  LossInputs inputs() const {
    return {A1.view(), A2.view(), A3.view(), E.view(), X.view(), Y.view()};
  }
};

struct ExactLoss {
  Array A1, A2, A3, E, X, Y;
  std::int64_t n, d;

  explicit ExactLoss(const LossSetting& in)
      : A1(in.A1.view()),
        A2(in.A2.view()),
        A3(in.A3.view()),
        E(in.E.view()),
        X(in.X.view()),
        Y(in.Y.view()),
        n(in.n),
        d(in.d) {}

  Real loss() const { return oracle::loss(A1, A2, A3, E, X, Y, n, d); }
  oracle::LossGradients gradient() const {
    return oracle::loss_gradient(A1, A2, A3, E, X, Y, n, d);
  }
  oracle::LossError error() const {
    return oracle::loss_float64_error(A1, A2, A3, E, X, Y, n, d, oracle::Chains::actual);
  }
};

double worst_ratio(const Tensor& got, const Array& exact, const Array& allowed) {
  double worst = 0;
  for (std::size_t e = 0; e < exact.values().size(); ++e) {
    const Real error = abs(Real(got.doubles()[e]) - exact.values()[e]);
    const double ratio = error == 0 ? 0.0 : Real(error / allowed.values()[e]).convert_to<double>();
    worst = ratio <= worst ? worst : ratio;
  }
  return worst;
}

TEST_CASE("loss gradient against 256-bit arithmetic", "[loss_gradient]") {
  double worst = 0;
  std::uint64_t seed = 1;
  for (const auto& [n, d] : {std::pair(1, 1), std::pair(7, 3), std::pair(3, 8), std::pair(20, 5)}) {
    for (const double factor : {0.0, 1e-3, 1.0, 30.0, 1e4}) {
      INFO("seqlen " << n << ", head_dim " << d << ", A1 * " << factor);
      const LossSetting in(n, d, factor, seed += 10);
      const ExactLoss exact(in);
      const LossGradient got = loss_gradient(in.inputs());
      const auto gradient = exact.gradient();
      const auto allowed = exact.error();
      const double dX = worst_ratio(got.dX, gradient.dX, allowed.dX);
      const double dY = worst_ratio(got.dY, gradient.dY, allowed.dY);
      CHECK(dX <= 1);
      CHECK(dY <= 1);
      CHECK(abs(Real(got.loss) - exact.loss()) <= allowed.loss);
      worst = std::max({worst, dX, dY});
    }
  }
  std::printf("loss gradient: worst error / proved error %.3f\n", worst);
}

// Every entry of X or Y moved by h either way. As in finite_difference_test.cpp, D(2h) - D(h) is
// three times the truncation; the loss is a sum of n d squares of sums of n terms, each from 2 d.
struct Differences {
  Array derivative, tolerance;
};

enum class Moved { X, Y };

Differences differences(const ExactLoss& in, Moved which) {
  const Real h = pow(Real(2), -67), roundoff = pow(Real(2), -256);
  const auto at = [&](std::int64_t i, std::int64_t j, const Real& step) {
    ExactLoss moved = in;
    (which == Moved::X ? moved.X : moved.Y)(i, j) += step;
    return moved.loss();
  };
  Differences result{in.X, in.X};
  const Real operations = Real(in.n * in.d + in.n + 2 * in.d + 16);
  // Relative errors of the scores count once, of values near zero through |c| <= |fh| + |E|.
  Real size = 1;
  for (const Array* array : {&in.A1, &in.A2, &in.A3, &in.E, &in.X, &in.Y}) {
    Real largest = 1;
    for (const Real& value : array->values()) largest = abs(value) > largest ? abs(value) : largest;
    size *= largest * Real(in.d);
  }
  for (std::int64_t i = 0; i < in.d; ++i) {
    for (std::int64_t j = 0; j < in.d; ++j) {
      const Real once = (at(i, j, h) - at(i, j, -h)) / (2 * h);
      const Real twice = (at(i, j, 2 * h) - at(i, j, -2 * h)) / (4 * h);
      result.derivative(i, j) = once;
      result.tolerance(i, j) =
          abs(twice - once) + operations * roundoff * size * size * Real(in.n * in.d) / h;
    }
  }
  return result;
}

bool agree(const Array& gradient, const Array& error, const Differences& expected) {
  for (std::size_t e = 0; e < gradient.values().size(); ++e) {
    const Real distance = abs(gradient.values()[e] - expected.derivative.values()[e]);
    if (!(distance <= expected.tolerance.values()[e] + error.values()[e])) return false;
  }
  return true;
}

TEST_CASE("loss gradient against finite differences of the loss", "[loss_gradient]") {
  const LossSetting setting(7, 3, 1, 5);
  const ExactLoss in(setting);
  const auto dX = differences(in, Moved::X), dY = differences(in, Moved::Y);
  const auto exact = in.gradient();
  const Array none(setting.square());
  CHECK(agree(exact.dX, none, dX));
  CHECK(agree(exact.dY, none, dY));
  const LossGradient got = loss_gradient(setting.inputs());
  const auto error = in.error();
  CHECK(agree(Array(got.dX.view()), error.dX, dX));
  CHECK(agree(Array(got.dY.view()), error.dY, dY));
}

TEST_CASE("finite differences refuse a wrong loss gradient", "[loss_gradient]") {
  const LossSetting setting(7, 3, 1, 5);
  const ExactLoss in(setting);
  const auto dX = differences(in, Moved::X), dY = differences(in, Moved::Y);
  const auto error = in.error();
  // The gradient for another target: delta and c no longer belong together.
  ExactLoss other = in;
  for (Real& value : other.E.values()) value = 0;
  CHECK_FALSE(agree(other.gradient().dX, error.dX, dX));
  CHECK_FALSE(agree(other.gradient().dY, error.dY, dY));
  Array slip = in.gradient().dX;
  for (Real& value : slip.values()) value *= 1 + pow(Real(2), -36);
  CHECK_FALSE(agree(slip, error.dX, dX));
  Array transposed = in.gradient().dY;
  std::swap(transposed(0, 1), transposed(1, 0));
  CHECK_FALSE(agree(transposed, error.dY, dY));
}

TEST_CASE("loss inputs that do not match are refused by name", "[loss_gradient]") {
  const LossSetting in(5, 3, 1, 1), longer(6, 3, 1, 1), wider(5, 4, 1, 1);
  const auto with = [&](TensorView LossInputs::*member, const Tensor& tensor) {
    LossInputs inputs = in.inputs();
    inputs.*member = tensor.view();
    return inputs;
  };
  CHECK_THROWS_WITH(loss_gradient(with(&LossInputs::A2, longer.A2)),
                    "A2: seqlen is 6, but the problem needs 5");
  CHECK_THROWS_WITH(loss_gradient(with(&LossInputs::A3, wider.A3)),
                    "A3: head_dim is 4, but the problem needs 3");
  CHECK_THROWS_WITH(loss_gradient(with(&LossInputs::E, longer.E)),
                    "E: seqlen is 6, but the problem needs 5");
  CHECK_THROWS_WITH(loss_gradient(with(&LossInputs::X, wider.X)),
                    "X: head_dim is 4, but the problem needs 3");
  CHECK_THROWS_WITH(loss_gradient(with(&LossInputs::Y, wider.Y)),
                    "Y: head_dim is 4, but the problem needs 3");
  const Tensor flat("A1", DType::f64, {{"seqlen", 5, 0}});
  CHECK_THROWS_AS(loss_gradient(with(&LossInputs::A1, flat)), InvalidProblem);
}

}  // namespace
}  // namespace attest::reference
