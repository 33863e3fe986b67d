#include "certify/report/html/evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "core/dtype/dtype.hpp"
#include "core/error.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::certify {
namespace {

struct Output {
  const Tensor& got;
  const Tensor& exact;
  const reference::ErrorBound& bound;
};

std::vector<Output> outputs_of(const attest_description& description,
                               const proptest::Solved& solved, Direction direction) {
  const proptest::Truth& truth = solved.truth;
  const proptest::KernelRun& run = solved.run;
  std::vector<Output> outputs{{run.O, truth.forward().O, truth.forward_bounds().O}};
  if ((description.features & ATTEST_LSE) != 0) {
    outputs.push_back({run.LSE, truth.forward().LSE, truth.forward_bounds().LSE});
  }
  if (direction == Direction::forward) return outputs;
  const reference::BackwardBounds& bounds = truth.backward_bounds(run);
  outputs.push_back({run.dQ, truth.backward().dQ, bounds.dQ});
  outputs.push_back({run.dK, truth.backward().dK, bounds.dK});
  outputs.push_back({run.dV, truth.backward().dV, bounds.dV});
  if (run.dSinks.view().rank() > 0) {
    outputs.push_back({run.dSinks, truth.backward().dSinks, bounds.dSinks});
  }
  if (run.dBias.view().rank() > 0) {
    outputs.push_back({run.dBias, truth.backward().dBias, bounds.dBias});
  }
  return outputs;
}

double ratio_at(const Output& of, std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t l) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double got = of.got(i, j, k, l), exact = of.exact(i, j, k, l);
  if (got == exact || (std::isnan(got) && std::isnan(exact))) return 0;
  const double ratio = std::abs(got - exact) / of.bound.probabilistic(i, j, k, l);
  return ratio >= 0 ? ratio : kInfinity;
}

// A picture needs no more, and a certificate stays small.
double three_digits(double ratio) {
  if (ratio == 0 || !std::isfinite(ratio)) return ratio;
  return std::strtod(fmt::format("{:.3g}", ratio).c_str(), nullptr);
}

// The smallest power of two of which `extent` has at most as many as a picture has cells.
std::int64_t step_for(std::int64_t extent) {
  constexpr std::int64_t kMostCells = 32;
  std::int64_t step = 1;
  while (extent > kMostCells * step) step *= 2;
  return step;
}

// One row: each element is a sum over all rows of its head.
ErrorGrid grid_of_heads(const Output& of, const proptest::Comparison& worst) {
  ErrorGrid grid;
  grid.output = worst.output;
  grid.head = worst.worst_index[0];
  grid.row_axis = "all rows";
  grid.column_axis = std::string(of.got.view().axis(0).name);
  grid.rows = 1;
  grid.columns = of.got.view().extent(0);
  grid.column_step = step_for(grid.columns);
  grid.cells.assign(
      static_cast<std::size_t>((grid.columns + grid.column_step - 1) / grid.column_step), 0);
  for (std::int64_t h = 0; h < grid.columns; ++h) {
    double& cell = grid.cells[static_cast<std::size_t>(h / grid.column_step)];
    cell = std::max(cell, three_digits(ratio_at(of, h, 0, 0, 0)));
  }
  return grid;
}

ErrorGrid grid_of(const Output& of, const proptest::Comparison& worst) {
  const TensorView& view = of.got.view();
  if (view.rank() == 1) return grid_of_heads(of, worst);
  const bool scalar = view.rank() == 3;        // (batch, heads, seqlen): drawn as seqlen x heads
  const bool pairs = worst.output == "dBias";  // (batch, heads, seqlen_q, seqlen_k)
  const std::size_t row = scalar || pairs ? 2 : 1, column = scalar ? 1 : 3;
  ErrorGrid grid;
  grid.output = worst.output;
  grid.batch = worst.worst_index[0];
  grid.head = worst.worst_index[scalar || pairs ? 1 : 2];
  grid.row_axis = std::string(view.axis(row).name);
  grid.column_axis = std::string(view.axis(column).name);
  grid.rows = view.extent(row);
  grid.columns = view.extent(column);
  grid.row_step = step_for(grid.rows);
  grid.column_step = step_for(grid.columns);
  const std::int64_t across = (grid.columns + grid.column_step - 1) / grid.column_step;
  const std::int64_t down = (grid.rows + grid.row_step - 1) / grid.row_step;
  grid.cells.assign(static_cast<std::size_t>(across * down), 0);
  for (std::int64_t i = 0; i < grid.rows; ++i) {
    for (std::int64_t j = 0; j < grid.columns; ++j) {
      const double ratio = scalar  ? ratio_at(of, grid.batch, j, i, 0)
                           : pairs ? ratio_at(of, grid.batch, grid.head, i, j)
                                   : ratio_at(of, grid.batch, i, grid.head, j);
      double& cell =
          grid.cells[static_cast<std::size_t>(i / grid.row_step * across + j / grid.column_step)];
      cell = std::max(cell, ratio);
    }
  }
  for (double& cell : grid.cells) cell = three_digits(cell);
  return grid;
}

using Comparisons = std::vector<proptest::Comparison>;

// Runs a case, compares it with the truth and shows the comparisons; nothing when all of them pass
// or there is nothing to compare with.
template <class Show>
auto shown(const attest_kernel& kernel, const proptest::Case& c, const Show& show) -> std::optional<
    std::invoke_result_t<Show, const proptest::Solved&, Direction, const Comparisons&>> {
  const bool attention = (kernel.description.directions & (ATTEST_FORWARD | ATTEST_BACKWARD)) != 0;
  if (!attention || !affordable(c.problem)) return std::nullopt;
  try {
    const Direction direction = proptest::furthest(kernel, c.problem);
    const proptest::Solved solved(kernel, c.problem,
                                  proptest::make_values(c.problem, c.values, c.seed), direction, c);
    const Comparisons comparisons = solved.truth.judge(solved.run);
    const bool passed = std::all_of(comparisons.begin(), comparisons.end(),
                                    [](const auto& one) { return one.verdict == Verdict::passed; });
    if (passed) return std::nullopt;
    return show(solved, direction, comparisons);
  } catch (const proptest::Stopped&) {
    return std::nullopt;
  } catch (const InvalidProblem&) {  // values without an answer
    return std::nullopt;
  }
}

template <class Visit>
void for_each_element(const TensorView& view, const Visit& visit) {
  const auto extent = [&](std::size_t axis) { return axis < view.rank() ? view.extent(axis) : 1; };
  for (std::int64_t i = 0; i < extent(0); ++i) {
    for (std::int64_t j = 0; j < extent(1); ++j) {
      for (std::int64_t k = 0; k < extent(2); ++k) {
        for (std::int64_t l = 0; l < extent(3); ++l) visit(i, j, k, l);
      }
    }
  }
}

}  // namespace

bool affordable(const Problem& p) {
  constexpr double kMostProducts = 0x1p26;
  return static_cast<double>(p.batch * p.num_heads_q) * static_cast<double>(p.seqlen_q) *
             static_cast<double>(p.seqlen_k) * static_cast<double>(p.head_dim_qk + p.head_dim_v) <=
         kMostProducts;
}

bool flushes_results(const attest_kernel& kernel, const proptest::Case& c) {
  const auto show = [&](const proptest::Solved& solved, Direction direction, const Comparisons&) {
    bool refused = false, flushed = true;
    for (const Output& of : outputs_of(kernel.description, solved, direction)) {
      const DType dtype = of.got.view().dtype();
      const double smallest_normal = underflow_unit(dtype) / unit_roundoff(dtype);
      for_each_element(of.got.view(), [&](auto i, auto j, auto k, auto l) {
        if (ratio_at(of, i, j, k, l) <= 1) return;
        refused = true;
        const double exact = std::abs(of.exact(i, j, k, l));
        flushed = flushed && of.got(i, j, k, l) == 0 && exact > 0 && exact < smallest_normal;
      });
    }
    return refused && flushed;
  };
  return shown(kernel, c, show).value_or(false);
}

std::optional<ErrorGrid> error_grid(const attest_kernel& kernel, const proptest::Case& c) {
  return shown(kernel, c,
               [&](const proptest::Solved& solved, Direction direction, const Comparisons& all) {
                 const auto worst =
                     std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
                       return (a.verdict == Verdict::passed ? 0 : a.ratio) <
                              (b.verdict == Verdict::passed ? 0 : b.ratio);
                     });
                 const auto outputs = outputs_of(kernel.description, solved, direction);
                 return grid_of(outputs[static_cast<std::size_t>(worst - all.begin())], *worst);
               });
}

std::string bound_term(const attest_kernel& kernel, const proptest::Case& c) {
  const auto show = [](const proptest::Solved& solved, Direction,
                       const Comparisons& all) -> std::string {
    const proptest::Judgement judgement = proptest::gravest(all);
    const auto told = std::find_if(
        all.begin(), all.end(), [&](const auto& one) { return one.verdict == judgement.verdict; });
    // No bound is the cause of NaN and infinity.
    if (!std::isfinite(told->got) || !std::isfinite(told->exact)) return "";
    return told->output + ": " + solved.truth.dominating_term(solved.run, *told);
  };
  return shown(kernel, c, show).value_or("");
}

Evidence examine(const attest_kernel& kernel, const proptest::Case& found,
                 const proptest::Case& shrunk) {
  return {proptest::signatures_of(kernel, shrunk, found), error_grid(kernel, found),
          bound_term(kernel, shrunk)};
}

}  // namespace attest::certify
