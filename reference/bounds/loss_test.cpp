// The loss gradient's bounds against float32 kernels in many orders, and against wrong ones.
#include "reference/bounds/loss.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "reference/bounds/steps/roundoff.hpp"
#include "reference/exact/loss_terms.hpp"
#include "reference/testing/loss_kernel.hpp"
#include "reference/testing/setting.hpp"

namespace attest::reference {
namespace {

using Value = std::function<double(Rng& rng, std::int64_t row, std::int64_t column)>;

Tensor filled(const char* name, std::int64_t rows, std::int64_t columns, std::uint64_t seed,
              const Value& value) {
  Tensor tensor(name, DType::f64, {{"rows", rows, 0}, {"columns", columns, 0}});
  Rng rng(seed);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      // Values that float32 holds exactly.
      tensor.set(static_cast<float>(value(rng, i, j)), i, j);
    }
  }
  return tensor;
}

struct Data {
  Tensor A1, A2, A3, E, X, Y;
  LossInputs inputs() const {
    return {A1.view(), A2.view(), A3.view(), E.view(), X.view(), Y.view()};
  }
};

struct Family {
  std::string name;
  double scores;  // size of the scores
  Value tall;     // A1, A2, A3, E
  Value square;   // X, Y
  // Medians of Bp/error of dX and dY when first measured; 0 where most errors are 0.
  double median_dX, median_dY;
};

const std::vector<Family>& families() {
  const Value normal = [](Rng& rng, auto, auto) { return rng.normal(); };
  const Value positive = [](Rng& rng, auto, auto) { return rng.uniform(); };
  const Value integer = [](Rng& rng, auto, auto) {
    return static_cast<double>(rng.between(-4, 4));
  };
  const Value constant = [](Rng&, auto, auto) { return 0.7; };
  const Value repeated = [](Rng&, std::int64_t i, std::int64_t j) {
    return Rng(static_cast<std::uint64_t>(i % 4), static_cast<std::uint64_t>(j)).normal();
  };
  const Value indicator = [](Rng&, std::int64_t i, std::int64_t j) {
    return i % 7 == j % 7 ? 1.0 : 0.0;
  };
  static const std::vector<Family> list{{"scores 0", 0, normal, normal, 1961, 873},
                                        {"scores 0.001", 1e-3, normal, normal, 908, 424},
                                        {"scores 1", 1, normal, normal, 1045, 472},
                                        {"scores 4", 4, normal, normal, 728, 757},
                                        {"scores 30", 30, normal, normal, 1014, 2577},
                                        {"scores 1000", 1e3, normal, normal, 0, 0},
                                        {"positive", 1, positive, positive, 345, 268},
                                        {"integers", 1, integer, integer, 1043, 2131},
                                        {"constant", 1, constant, constant, 197, 225},
                                        {"repeated rows", 1, repeated, normal, 423, 338},
                                        {"indicator", 1, indicator, normal, 482, 260},
                                        {"target met", 1, normal, normal, 0, 0}};
  return list;
}

Data make(const Family& family, std::int64_t n, std::int64_t d, std::uint64_t seed) {
  const double x = family.scores / static_cast<double>(d), y = 1 / std::sqrt(double(d));
  const auto scaled = [&](double factor) {
    return [&family, factor](Rng& rng, std::int64_t i, std::int64_t j) {
      return factor * family.square(rng, i, j);
    };
  };
  Data data{filled("A1", n, d, seed, family.tall),     filled("A2", n, d, seed + 1, family.tall),
            filled("A3", n, d, seed + 2, family.tall), filled("E", n, d, seed + 3, family.tall),
            filled("X", d, d, seed + 4, scaled(x)),    filled("Y", d, d, seed + 5, scaled(y))};
  if (family.name == "target met") {  // c is nothing but rounding
    const Matrix fh = loss_terms(data.inputs()).fh;
    data.E = filled("E", n, d, seed, [&](Rng&, auto i, auto j) { return fh(i, j); });
  }
  return data;
}

struct Found {
  std::int64_t elements = 0, outside = 0, improbable = 0, accused = 0;
  double worst = 0, aggregate = 0;
  std::vector<double> looseness;

  void add(const Floats& got, const Tensor& exact, const ErrorBound& bound) {
    double squares = 0;
    for (Eigen::Index e = 0; e < got.size(); ++e) {
      const double error = std::abs(got.data()[e] - exact.doubles()[e]);
      const double allowed = bound.probabilistic.doubles()[e];
      ++elements;
      if (!(error <= bound.deterministic.doubles()[e])) ++outside;
      if (!(error <= allowed)) ++improbable;
      worst = std::max(worst, error / allowed);
      if (error > 0) looseness.push_back(allowed / error);
      squares += std::pow(error / bound.sigma.doubles()[e], 2);
    }
    if (got.size() < kAggregateElements) return;
    const double rms = std::sqrt(squares / static_cast<double>(got.size()));
    aggregate = std::max(aggregate, rms);
    if (!(rms <= kAggregateLimit)) ++accused;
  }

  double median() {
    if (looseness.empty()) return 0;
    const auto middle = looseness.begin() + static_cast<std::ptrdiff_t>(looseness.size() / 2);
    std::nth_element(looseness.begin(), middle, looseness.end());
    return *middle;
  }
};

TEST_CASE("float32 loss gradients lie within their bounds", "[loss_bounds]") {
  const bool nightly = attest::testing::is_nightly();
  const std::int64_t wanted = nightly ? 1000000 : 10000;
  const std::vector<std::pair<std::int64_t, std::int64_t>> shapes{
      {1, 1}, {5, 3}, {16, 16}, {40, 8}, {130, 4}, {9, 24}, {65, 16}};
  std::vector<std::map<std::string, Found>> all(families().size());
#pragma omp parallel for schedule(dynamic)
  for (std::size_t k = 0; k < all.size(); ++k) {
    std::map<std::string, Found>& found = all[k];
    for (unsigned index = 0; index < 128 || found["dX"].elements < wanted; ++index) {
      const auto [n, d] = shapes[index % shapes.size()];
      const Data data = make(families()[k], n, d, 100 + 10 * index);
      const LossGradient exact = loss_gradient(data.inputs());
      const LossBounds bounds = loss_bounds(Numerics{}, data.inputs());
      // 5 is coprime to the number of choices: every combination comes up.
      const auto [dX, dY] = LossKernel(5 * index % all_choices, LossDefect::none)(data.inputs());
      found["dX"].add(dX, exact.dX, bounds.dX);
      found["dY"].add(dY, exact.dY, bounds.dY);
    }
  }
  for (std::size_t k = 0; k < all.size(); ++k) {
    const Family& family = families()[k];
    for (auto& [output, result] : all[k]) {
      std::printf(
          "loss gradient, %-14s %s: %lld elements, worst error/Bp %.3f, median Bp/error %.0f, "
          "rms(error/sigma) %.3f\n",
          family.name.c_str(), output.c_str(), static_cast<long long>(result.elements),
          result.worst, result.median(), result.aggregate);
      INFO(family.name << ", " << output);
      CHECK(result.elements >= wanted);
      CHECK(result.outside == 0);
      CHECK(result.improbable == 0);
      CHECK(result.accused == 0);
      // As first measured on the shapes of a test run; with more elements others weigh most.
      const double first = output == "dX" ? family.median_dX : family.median_dY;
      constexpr double kLooser = 1.5;
      if (first > 0 && !nightly) CHECK(result.median() <= kLooser * first);
    }
  }
}

TEST_CASE("wrong loss gradients lie outside the bounds", "[loss_bounds]") {
  const std::vector<std::pair<LossDefect, const char*>> defects{
      {LossDefect::all_zero, "all zero"},
      {LossDefect::delta_omitted, "delta omitted"},
      {LossDefect::target_omitted, "E omitted"},
      {LossDefect::weights_bf16, "weights in bf16"},
      {LossDefect::scores_one_percent, "scores 1 % off"},
      {LossDefect::key_dropped, "key dropped"},
      {LossDefect::weights_not_normalised, "weights not normalised"},
      {LossDefect::c_transposed_sign, "sign"},
      {LossDefect::last_row_dropped, "last row dropped"},
      {LossDefect::dx_transposed, "dX transposed"}};
  for (const auto& [n, d] : {std::pair(40, 16), std::pair(130, 64), std::pair(7, 5)}) {
    const Data data = make(families()[2], n, d, 7);
    const LossGradient exact = loss_gradient(data.inputs());
    const LossBounds bounds = loss_bounds(Numerics{}, data.inputs());
    const auto judged = [&](LossDefect defect) {
      const auto [dX, dY] = LossKernel(0, defect)(data.inputs());
      std::pair<Found, Found> found;
      found.first.add(dX, exact.dX, bounds.dX);
      found.second.add(dY, exact.dY, bounds.dY);
      return found;
    };
    const auto [right_X, right_Y] = judged(LossDefect::none);
    CHECK(right_X.improbable == 0);
    CHECK(right_Y.improbable == 0);
    for (const auto& [defect, name] : defects) {
      const auto [in_X, in_Y] = judged(defect);
      std::printf(
          "loss gradient n=%d d=%d, %-22s worst error/Bp %9.3g of dX, %9.3g of dY; outside "
          "Bd: %lld, %lld\n",
          n, d, name, in_X.worst, in_Y.worst, static_cast<long long>(in_X.outside),
          static_cast<long long>(in_Y.outside));
      INFO(name << " n " << n << " d " << d);
      CHECK(in_X.improbable > 0);
      const bool dX_only =
          defect == LossDefect::delta_omitted || defect == LossDefect::dx_transposed;
      if (!dX_only) CHECK(in_Y.improbable > 0);
    }
  }
}

TEST_CASE("long coherent sums and declared depths keep the loss gradient's bounds",
          "[loss_bounds]") {
  // 600 equal keys: rounding to nearest is biased within a binade.
  for (const std::size_t family : {std::size_t{0}, std::size_t{8}, std::size_t{9}}) {
    const Data data = make(families()[family], 600, 3, 11);
    const LossGradient exact = loss_gradient(data.inputs());
    Numerics chains;
    chains.summation_depth = 32 + 600 / 32 + 1;
    for (const Eigen::Index chain : {0, 32}) {
      const LossBounds bounds = loss_bounds(chain == 0 ? Numerics{} : chains, data.inputs());
      for (const unsigned choices : {0u, static_cast<unsigned>(from_lse | x_left)}) {
        const auto [dX, dY] = LossKernel(choices, LossDefect::none, chain)(data.inputs());
        Found found;
        found.add(dX, exact.dX, bounds.dX);
        found.add(dY, exact.dY, bounds.dY);
        std::printf("loss gradient, %s, 600 rows, chains of %d: worst error/Bp %.3f\n",
                    families()[family].name.c_str(), static_cast<int>(chain), found.worst);
        CHECK(found.outside == 0);
        CHECK(found.improbable == 0);
      }
    }
  }
}

TEST_CASE("the loss gradient's bounds follow the contract", "[loss_bounds]") {
  const Data data = make(families()[2], 40, 4, 3);
  const LossBounds plain = loss_bounds(Numerics{}, data.inputs());
  const auto compared = [&](const Numerics& numerics, int sign) {
    const LossBounds other = loss_bounds(numerics, data.inputs());
    for (std::int64_t e = 0; e < 16; ++e) {
      for (const auto part : {&ErrorBound::deterministic, &ErrorBound::probabilistic}) {
        const double dX = (other.dX.*part).doubles()[e] - (plain.dX.*part).doubles()[e];
        const double dY = (other.dY.*part).doubles()[e] - (plain.dY.*part).doubles()[e];
        CHECK(sign * dX > 0);
        CHECK(sign * dY > 0);
      }
    }
  };
  Numerics truncating, tf32, leaky, shallow, crude;
  truncating.accumulation = Accumulation::truncating;
  tf32.input_roundoff = 0x1p-11;
  crude.exp_ulps = 40;
  shallow.summation_depth = 8;
  leaky.exp_zero_is_one = false;
  for (const Numerics& looser : {truncating, tf32, leaky, crude}) compared(looser, 1);
  compared(shallow, -1);
  Numerics cast, scaled, splits, half, flushing;
  flushing.flushed_below = 0x1p-126;
  half.accumulator_roundoff = unit_roundoff(DType::f16);
  cast.p_roundoff = scaled.scaled_q_roundoff = 0x1p-8;
  splits.lse_splits = 2;
  for (const Numerics& uncovered : {cast, scaled, splits, half, flushing}) {
    CHECK_THROWS_AS(loss_bounds(uncovered, data.inputs()), InvalidProblem);
  }
  CHECK_THROWS_AS(loss_bounds(Numerics{}, make(families()[2], 0, 4, 3).inputs()), InvalidProblem);
  for (std::int64_t e = 0; e < 16; ++e) {
    CHECK(plain.dX.probabilistic.doubles()[e] <= plain.dX.deterministic.doubles()[e]);
    CHECK(plain.dY.probabilistic.doubles()[e] <= plain.dY.deterministic.doubles()[e]);
  }
}

}  // namespace
}  // namespace attest::reference
