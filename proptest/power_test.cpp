// What the bounds refuse: wrong results of the kinds that kernels produce, over families, lengths
// and dtypes. The numbers are those of docs/theory/error-bounds.md, section "Power".
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "core/testing/catch.hpp"
#include "fixtures/defects/defect.hpp"
#include "fixtures/emulated/emulation.hpp"
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

// Wrong problems whose exact result a wrong kernel returns.
std::map<std::string, Problem> wrong_problems(const Problem& p) {
  std::map<std::string, Problem> wrong{{"last key dropped", hiding(p, p.seqlen_k - 1)},
                                       {"middle key dropped", hiding(p, p.seqlen_k / 2)},
                                       {"scale 1 % off", p},
                                       {"mean of V", p}};
  wrong["scale 1 % off"].softmax_scale = p.scale() * 1.01;
  wrong["mean of V"].softmax_scale = 0.0;
  if (p.mask.banded()) {
    wrong["mask off by one"] = p;
    wrong["mask off by one"].mask.window_right = 1;
  }
  return wrong;
}

using Counts = std::map<std::string, int>;

Counts forward_refusals(DType dtype, const std::vector<std::int64_t>& lengths) {
  Counts counts;
  for (const Cell& cell : cells()) {
    for (const std::int64_t n : lengths) {
      const Problem p = Problem::parse(
          "sq=" + std::to_string(std::min<std::int64_t>(n, 128)) + ",sk=" + std::to_string(n) +
          ",d=64,dtype=" + std::string(name(dtype)) + (cell.causal ? ",mask=causal_br" : ""));
      const InputValues in = make_values(p, cell.values, 5);
      const attest_kernel kernel = contract(dtype);
      const Truth truth(kernel.description, p, in, Direction::forward, 5);
      const auto count = [&](const std::string& defect, const KernelRun& run) {
        counts[defect] += refused(truth.judge(run)) ? 1 : 0;
      };
      KernelRun run;
      run.O = stored(truth.forward().O, dtype);
      run.LSE = stored(truth.forward().LSE, DType::f32);
      count("valid", run);
      KernelRun zeros = run;
      zeros.O = Tensor("O", dtype, p.o_axes());
      count("zeros", zeros);
      KernelRun shifted = run;
      for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
        shifted.LSE.set(shifted.LSE(0, 0, i) + 0x1p-10, 0, 0, i);
      }
      count("LSE off by 2^-10", shifted);
      for (const auto& [defect, wrong] : wrong_problems(p)) {
        const auto result = reference::forward(wrong, {}, in.Q.view(), in.K.view(), in.V.view());
        KernelRun other;
        other.O = stored(result.O, dtype);
        other.LSE = stored(result.LSE, DType::f32);
        count(defect, other);
      }
      const Case c{p, cell.values, 5, 1};
      count("rescale missing",
            proptest::run(fixtures::defective_kernel(fixtures::Defect::missing_rescale), p, in,
                          Direction::forward, c));
      if (dtype == DType::bf16) continue;
      fixtures::Emulation undeclared;
      undeclared.name = "undeclared cast";
      undeclared.p_cast = 1 + ATTEST_BF16;
      count("P cast to bf16 undeclared", proptest::run(fixtures::emulated_kernel(undeclared, dtype),
                                                       p, in, Direction::forward, c));
    }
  }
  return counts;
}

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
      const auto count = [&](const std::string& defect, const reference::Backward& gradients) {
        run.dQ = stored(gradients.dQ, dtype);
        run.dK = stored(gradients.dK, dtype);
        run.dV = stored(gradients.dV, dtype);
        counts[defect] += refused(truth.judge(run)) ? 1 : 0;
      };
      count("valid", truth.backward());
      const reference::Cotangents cotangents{in.dO.view(), nullptr};
      for (const auto& [defect, wrong] : wrong_problems(p)) {
        if (defect == "mean of V") continue;
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

// `measured` counts refusals over all lengths; the longest is left to the nightly run, so that many
// fewer may be refused before it.
void check_power(const char* direction, DType dtype, const Counts& counts, const Counts& measured,
                 int cells_left_out) {
  for (const auto& [defect, count] : counts) {
    std::printf("%-8s %-4.*s %-26s refused in %d cells\n", direction,
                static_cast<int>(name(dtype).size()), name(dtype).data(), defect.c_str(), count);
    INFO(direction << " " << name(dtype) << " " << defect);
    if (defect == "valid") {
      CHECK(count == 0);
    } else {
      REQUIRE(measured.count(defect) == 1);
      CHECK(count >= measured.at(defect) - cells_left_out);
    }
  }
}

TEST_CASE("forward power is what was measured", "[power]") {
  const std::vector<std::int64_t> lengths =
      nightly() ? std::vector<std::int64_t>{16, 256, 4096} : std::vector<std::int64_t>{16, 256};
  const int left_out = nightly() ? 0 : 9;
  const Counts f32{{"zeros", 27},
                   {"mean of V", 27},
                   {"last key dropped", 26},
                   {"middle key dropped", 24},
                   {"scale 1 % off", 25},
                   {"mask off by one", 3},
                   {"rescale missing", 23},
                   {"P cast to bf16 undeclared", 27},
                   {"LSE off by 2^-10", 27}};
  const Counts bf16{{"zeros", 27},
                    {"mean of V", 23},
                    {"last key dropped", 26},
                    {"middle key dropped", 23},
                    {"scale 1 % off", 24},
                    {"mask off by one", 3},
                    {"rescale missing", 21},
                    {"LSE off by 2^-10", 27}};
  check_power("forward", DType::f32, forward_refusals(DType::f32, lengths), f32, left_out);
  check_power("forward", DType::bf16, forward_refusals(DType::bf16, lengths), bf16, left_out);
}

TEST_CASE("backward power is what was measured", "[power]") {
  const std::vector<std::int64_t> lengths =
      nightly() ? std::vector<std::int64_t>{16, 128, 768} : std::vector<std::int64_t>{16, 128};
  const int left_out = nightly() ? 0 : 8;
  const Counts f32{{"last key dropped", 24},
                   {"middle key dropped", 24},
                   {"scale 1 % off", 24},
                   {"mask off by one", 3},
                   {"dK without scale", 24}};
  const Counts bf16{{"last key dropped", 24},
                    {"middle key dropped", 24},
                    {"scale 1 % off", 22},
                    {"mask off by one", 3},
                    {"dK without scale", 24}};
  check_power("backward", DType::f32, backward_refusals(DType::f32, lengths), f32, left_out);
  check_power("backward", DType::bf16, backward_refusals(DType::bf16, lengths), bf16, left_out);
}

}  // namespace
}  // namespace attest::proptest
