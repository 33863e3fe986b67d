// What the backward bounds refuse: wrong gradients of the kinds that kernels produce, over
// families, lengths and dtypes. The numbers are those of docs/theory/error-bounds.md, section
// "Power".
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "fixtures/defects/defect.hpp"
#include "proptest/truth.hpp"

namespace attest::proptest {
namespace {

struct Cell {
  Values values;
  bool causal;
};

const std::vector<Cell>& cells() {
  static const std::vector<Cell> all{
      {Values::normal, false},  {Values::x10, false},       {Values::all_positive, false},
      {Values::uniform, false}, {Values::normal, true},     {Values::rising_maximum, false},
      {Values::halves, false},  {Values::indicator, false}, {Values::positive_v, false}};
  return all;
}

bool nightly() { return std::getenv("ATTEST_NIGHTLY") != nullptr; }

// A contract: P is cast to the dtype in 16 bit, as most kernels do.
attest_kernel contract(DType dtype) {
  attest_kernel kernel = fixtures::defective_kernel(fixtures::Defect::none);
  if (dtype != DType::f32) kernel.description.numerics.p_cast = 1 + abi(dtype);
  kernel.description.features &= ~static_cast<std::uint32_t>(ATTEST_DLSE);
  return kernel;
}

Problem hiding(const Problem& problem, std::int64_t key) {
  Problem changed = problem;
  auto mask = std::make_shared<BooleanMask>();
  mask->rows = problem.seqlen_q;
  mask->columns = problem.seqlen_k;
  mask->spelling = "hidden";
  mask->visible.assign(static_cast<std::size_t>(mask->rows * mask->columns), 1);
  for (std::int64_t i = 0; i < mask->rows; ++i) {
    mask->visible[static_cast<std::size_t>(i * mask->columns + key)] = 0;
  }
  changed.mask.boolean = mask;
  return changed;
}

Tensor stored(const Tensor& exact, DType dtype) {
  std::vector<Axis> axes;
  for (std::size_t axis = 0; axis < exact.view().rank(); ++axis) {
    axes.push_back(exact.view().axis(axis));
  }
  Tensor result(exact.view().name(), dtype, axes);
  const auto extent = [&](std::size_t axis) {
    return axis < exact.view().rank() ? exact.view().extent(axis) : std::int64_t{1};
  };
  for (std::int64_t a = 0; a < extent(0); ++a) {
    for (std::int64_t b = 0; b < extent(1); ++b) {
      for (std::int64_t c = 0; c < extent(2); ++c) {
        for (std::int64_t d = 0; d < extent(3); ++d) result.set(exact(a, b, c, d), a, b, c, d);
      }
    }
  }
  return result;
}

bool refused(const std::vector<Comparison>& comparisons) {
  const Verdict verdict = gravest(comparisons).verdict;
  return verdict == Verdict::violated || verdict == Verdict::improbable;
}

// Largest error over bound among the gradients.
double worst_gradient(const std::vector<Comparison>& comparisons) {
  double worst = 0;
  for (const Comparison& comparison : comparisons) {
    if (comparison.output[0] == 'd') worst = std::max(worst, comparison.ratio);
  }
  return worst;
}

// Wrong problems whose exact result a wrong kernel returns.
std::map<std::string, Problem> wrong_problems(const Problem& p) {
  std::map<std::string, Problem> wrong{{"last key dropped", hiding(p, p.seqlen_k - 1)},
                                       {"middle key dropped", hiding(p, p.seqlen_k / 2)},
                                       {"scale 1 % off", p}};
  wrong["scale 1 % off"].softmax_scale = p.scale() * 1.01;
  if (p.mask.banded()) {
    wrong["mask off by one"] = p;
    wrong["mask off by one"].mask.window_right = 1;
  }
  return wrong;
}

// Equivalent: within the bound and no further from the truth than two roundings of a right result.
struct Count {
  int cells = 0, refused = 0, equivalent = 0;
};

using Counts = std::map<std::string, Count>;

Counts backward_refusals(DType dtype, const std::vector<std::int64_t>& lengths) {
  Counts counts;
  for (const Cell& cell : cells()) {
    if (cell.values == Values::positive_v) continue;
    for (const std::int64_t n : lengths) {
      const Problem p =
          Problem::parse("sq=" + std::to_string(n) + ",d=64,dtype=" + std::string(name(dtype)) +
                         (cell.causal ? ",mask=causal_br" : ""));
      const InputValues in = make_values(p, cell.values, 5);
      const attest_kernel kernel = contract(dtype);
      const Truth truth(kernel.description, p, in, Direction::backward, 5);
      KernelRun run;
      run.O = stored(truth.forward().O, dtype);
      run.LSE = stored(truth.forward().LSE, DType::f32);
      double rounding = 0;
      const auto count = [&](const std::string& defect, const reference::Backward& gradients) {
        run.dQ = stored(gradients.dQ, dtype);
        run.dK = stored(gradients.dK, dtype);
        run.dV = stored(gradients.dV, dtype);
        const std::vector<Comparison> judged = truth.judge(run);
        if (defect == "valid") rounding = worst_gradient(judged);
        Count& counted = counts[defect];
        ++counted.cells;
        if (refused(judged)) {
          ++counted.refused;
        } else if (worst_gradient(judged) <= 2 * rounding) {
          ++counted.equivalent;
        }
      };
      count("valid", truth.backward());
      const reference::Cotangents cotangents{in.dO.view(), nullptr};
      for (const auto& [defect, wrong] : wrong_problems(p)) {
        count(defect,
              reference::backward(wrong, in.Q.view(), in.K.view(), in.V.view(), cotangents));
      }
      reference::Backward unscaled = truth.backward();
      double* dK = unscaled.dK.doubles();
      for (std::int64_t e = 0; e < unscaled.dK.view().size(); ++e) dK[e] /= p.scale();
      count("dK without scale", unscaled);
    }
  }
  return counts;
}

// The changed result is within the roundings of the right one in at most `escapes` cells.
void check_power(DType dtype, const Counts& counts, const std::map<std::string, int>& escapes) {
  for (const auto& [defect, count] : counts) {
    std::printf("backward %-4.*s %-20s refused in %d of %d cells, equivalent in %d\n",
                static_cast<int>(name(dtype).size()), name(dtype).data(), defect.c_str(),
                count.refused, count.cells, count.equivalent);
    INFO(name(dtype) << " " << defect);
    if (defect == "valid") {
      CHECK(count.refused == 0);
    } else {
      REQUIRE(escapes.count(defect) == 1);
      CHECK(count.cells - count.refused - count.equivalent <= escapes.at(defect));
    }
  }
}

TEST_CASE("backward bounds refuse wrong gradients and no right ones", "[validation]") {
  const std::vector<std::int64_t> lengths =
      nightly() ? std::vector<std::int64_t>{16, 128, 768} : std::vector<std::int64_t>{16, 128};
  std::map<std::string, int> escapes{{"last key dropped", 0},
                                     {"middle key dropped", 0},
                                     {"scale 1 % off", 0},
                                     {"mask off by one", 0},
                                     {"dK without scale", 0}};
  check_power(DType::f32, backward_refusals(DType::f32, lengths), escapes);
  escapes["scale 1 % off"] = nightly() ? 2 : 1;  // of 24 cells (the power table), of 16
  check_power(DType::bf16, backward_refusals(DType::bf16, lengths), escapes);
}

}  // namespace
}  // namespace attest::proptest
