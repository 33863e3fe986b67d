#include "proptest/signatures/results.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/dtype/dtype.hpp"
#include "core/dtype/dtype_range.hpp"

namespace attest::proptest {
namespace {

const Tensor& output_of(const KernelRun& run, const std::string& name) {
  if (name == "O") return run.O;
  if (name == "LSE") return run.LSE;
  if (name == "dQ") return run.dQ;
  if (name == "dK") return run.dK;
  if (name == "dV") return run.dV;
  return name == "dSinks" ? run.dSinks : run.dBias;
}

// Values beyond the dtype's range become infinite and those below it zero, as a kernel's do.
Tensor within_range(Tensor values, DType dtype) {
  for (std::int64_t e = 0; e < values.view().size(); ++e) {
    double& value = values.doubles()[e];
    const double stored = round_to(dtype, value);
    if (std::isinf(stored) || stored == 0) value = stored;
  }
  return values;
}

// Where a bound is no number it says nothing, and nothing is outside it.
Tensor without_nan(Tensor bound) {
  for (std::int64_t e = 0; e < bound.view().size(); ++e) {
    double& value = bound.doubles()[e];
    if (std::isnan(value)) value = std::numeric_limits<double>::infinity();
  }
  return bound;
}

}  // namespace

Results::Results(const Scene& scene) : scene_(scene) {
  for (const Comparison& comparison : scene_.truth.judge(scene_.run)) {
    if (comparison.verdict == Verdict::passed) continue;
    refused_.insert(comparison.output);
  }
}

Pass Results::wrong() const {
  if (refused_.count("O") + refused_.count("LSE") > 0) return Pass::forward;
  return refused_.empty() ? Pass::none : Pass::backward;
}

std::vector<Alternative> Results::alternatives(Pass pass, Suspects only) const {
  return pass == Pass::forward ? forward_alternatives(scene_, only)
                               : backward_alternatives(scene_, only);
}

bool Results::equals(const Alternative& alternative) const {
  return std::all_of(alternative.outputs.begin(), alternative.outputs.end(),
                     [&](const Expected& expected) {
                       const TensorView& got = output_of(scene_.run, expected.output).view();
                       const reference::ErrorBound& bound = expected.bound;
                       return compare(got, within_range(expected.value, got.dtype()),
                                      {without_nan(bound.deterministic),
                                       without_nan(bound.probabilistic), without_nan(bound.sigma)})
                                  .verdict == Verdict::passed;
                     });
}

bool Results::leaves_range(const Alternative& alternative) const {
  const double largest =
      has_narrow_range(scene_.problem.dtype) ? 3e4 : 1e37;  // as Truth::in_domain
  const auto leaves = [&](const Expected& expected) {
    const bool gradient = expected.output[0] == 'd';
    const double* values = expected.value.doubles();
    return std::any_of(values, values + expected.value.view().size(), [&](double value) {
      return std::isfinite(value) ? std::abs(value) >= largest : gradient;
    });
  };
  return std::any_of(alternative.outputs.begin(), alternative.outputs.end(), leaves);
}

bool Results::tells_apart(const Alternative& alternative) const {
  return std::any_of(alternative.outputs.begin(), alternative.outputs.end(),
                     [&](const Expected& expected) {
                       return refused_.count(expected.output) > 0 && refuses(expected);
                     });
}

const Tensor& Results::truth_of(const std::string& output) const {
  const Truth& truth = scene_.truth;
  if (output == "O") return truth.forward().O;
  if (output == "LSE") return truth.forward().LSE;
  if (output == "dQ") return truth.backward().dQ;
  if (output == "dK") return truth.backward().dK;
  if (output == "dV") return truth.backward().dV;
  return output == "dSinks" ? truth.backward().dSinks : truth.backward().dBias;
}

double Results::bits_of_agreement(const Alternative& alternative) const {
  constexpr double kOfClass = 1;
  double bits = 0;
  for (const Expected& expected : alternative.outputs) {
    if (refused_.count(expected.output) == 0) continue;
    const TensorView& got = output_of(scene_.run, expected.output).view();
    const double *const values = expected.value.doubles(),
                        *const truth = truth_of(expected.output).doubles(),
                        *const bound = expected.bound.probabilistic.doubles();
    for (std::int64_t e = 0; e < got.size(); ++e) {
      const double distance = std::abs(values[e] - truth[e]);
      if (distance == 0) continue;
      if (values[e] == 0 || !std::isfinite(distance)) {
        bits += kOfClass;
        continue;
      }
      const double resolution = std::max(bound[e], ulp(got.dtype(), values[e]));
      if (distance > resolution) bits += std::log2(distance / resolution);
    }
  }
  return bits;
}

bool Results::refuses(const Expected& expected) const {
  const auto differs = [&](const Tensor& exact, const reference::ErrorBound& bound) {
    return compare(expected.value.view(), exact, bound).verdict != Verdict::passed;
  };
  const Truth& truth = scene_.truth;
  const Tensor& exact = truth_of(expected.output);
  if (expected.output == "O") return differs(exact, truth.forward_bounds().O);
  if (expected.output == "LSE") return differs(exact, truth.forward_bounds().LSE);
  const reference::BackwardBounds& bounds = truth.backward_bounds(scene_.run);
  if (expected.output == "dQ") return differs(exact, bounds.dQ);
  if (expected.output == "dK") return differs(exact, bounds.dK);
  if (expected.output == "dV") return differs(exact, bounds.dV);
  return differs(exact, expected.output == "dSinks" ? bounds.dSinks : bounds.dBias);
}

}  // namespace attest::proptest
