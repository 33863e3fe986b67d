#include "proptest/truth.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "proptest/contract_terms.hpp"

namespace attest::proptest {
namespace {

using reference::ErrorBound;
using reference::Forward;

Tensor zeros_like(const Tensor& tensor) {
  std::vector<Axis> axes;
  for (std::size_t axis = 0; axis < tensor.view().rank(); ++axis) {
    axes.push_back(tensor.view().axis(axis));
  }
  return Tensor(tensor.view().name(), DType::f64, axes);
}

double largest(const Tensor& tensor) {
  double value = 0;
  for (std::int64_t e = 0; e < tensor.view().size(); ++e) {
    value = std::max(value, std::abs(tensor.doubles()[e]));
  }
  return value;
}

// The largest Euclidean norm over the last axis.
double largest_row_norm(const Tensor& tensor) {
  const std::int64_t columns = std::max<std::int64_t>(tensor.view().extent(3), 1);
  double most = 0, square = 0;
  for (std::int64_t e = 0; e < tensor.view().size(); ++e) {
    square = (e % columns == 0 ? 0 : square) + tensor.doubles()[e] * tensor.doubles()[e];
    most = std::max(most, square);
  }
  return std::sqrt(most);
}

// The same problem with the last visible key of every row hidden.
Problem without_last_keys(const Problem& problem) {
  Problem changed = problem;
  auto mask = std::make_shared<BooleanMask>();
  mask->rows = problem.seqlen_q;
  mask->columns = problem.seqlen_k;
  mask->spelling = "decoy";
  mask->visible.assign(static_cast<std::size_t>(mask->rows * mask->columns), 1);
  for (const Sequence& sequence : problem.sequences()) {
    for (std::int64_t i = 0; i < sequence.q_length; ++i) {
      for (std::int64_t j = 0; j < sequence.k_length; ++j) {
        if (problem.mask.boolean && !problem.mask.visible(sequence, i, j)) {
          mask->visible[static_cast<std::size_t>(i * mask->columns + j)] =
              problem.mask.boolean->visible[static_cast<std::size_t>(i * mask->columns + j)];
        }
      }
      for (std::int64_t j = sequence.k_length; j-- > 0;) {
        if (!problem.mask.visible(sequence, i, j)) continue;
        mask->visible[static_cast<std::size_t>(i * mask->columns + j)] = 0;
        break;
      }
    }
  }
  changed.mask.boolean = mask;
  return changed;
}

struct Decoy {
  std::string name;
  Problem problem;
};

// Wrong results that a wrong kernel plausibly returns: the truth of another problem.
std::vector<Decoy> other_problems(const Problem& problem) {
  std::vector<Decoy> decoys;
  if (problem.scale() != 1) {
    decoys.push_back({"without scale", problem});
    decoys.back().problem.softmax_scale = 1.0;
  }
  if (problem.mask.banded() || problem.mask.boolean) {
    decoys.push_back({"without mask", problem});
    Pattern& mask = decoys.back().problem.mask;
    mask.window_left = mask.window_right = -1;
    mask.boolean = nullptr;
  }
  decoys.push_back({"last key dropped", without_last_keys(problem)});
  return decoys;
}

// O = mean of V over the sequence's keys.
Forward mean_of_values(const Problem& problem, const Conventions& conventions,
                       const InputValues& values) {
  Problem uniform = problem;
  uniform.softmax_scale = 0.0;
  uniform.alibi = Alibi::none;
  uniform.mask.window_left = uniform.mask.window_right = -1;
  uniform.mask.boolean = nullptr;
  return reference::forward(uniform, conventions, values.Q.view(), values.K.view(),
                            values.V.view());
}

// What the reference errs by itself is nothing beside the bounds of any other dtype.
bool as_exact_as_the_reference(const Problem& problem) { return problem.dtype == DType::f64; }

}  // namespace

Truth::Truth(const attest_description& description, const Problem& problem,
             const InputValues& values, Direction direction, std::uint64_t seed)
    : description_(description),
      problem_(problem),
      values_(values),
      direction_(direction),
      conventions_(conventions_of(description)),
      numerics_(resolve(description.numerics, problem.dtype)),
      cotangents_{values.dO.view(), uses_dlse(description, seed) ? &values.dLSE.view() : nullptr} {
  require_answer(problem, values);
  const TensorView &Q = values.Q.view(), &K = values.K.view(), &V = values.V.view();
  forward_ = reference::forward(problem, conventions_, Q, K, V);
  forward_bounds_ = reference::forward_bounds(problem, conventions_, numerics_, Q, K, V, forward_);
  if (as_exact_as_the_reference(problem)) {
    const reference::ForwardBounds own = reference::forward_bounds(
        problem, conventions_, resolve({}, problem.dtype), Q, K, V, forward_);
    reference::widen(forward_bounds_.O, own.O);
    reference::widen(forward_bounds_.LSE, own.LSE);
  }
  if (direction == Direction::forward) return;
  plain_forward_ = reference::forward(problem, {}, Q, K, V);
  backward_ = reference::backward(problem, Q, K, V, cotangents_);
}

const reference::BackwardBounds& Truth::backward_bounds(const KernelRun& run) const {
  const std::lock_guard lock(*guard_);
  for (const Remembered& known : bounds_) {
    if (identical(known.O, run.O) && identical(known.LSE, run.LSE)) return known.bounds;
  }
  reference::BackwardBounds bounds = backward_bounds(numerics_, {run.O.view(), run.LSE.view()});
  if (as_exact_as_the_reference(problem_)) {
    const reference::BackwardBounds own =
        backward_bounds(resolve({}, problem_.dtype), {forward_.O.view(), forward_.LSE.view()});
    reference::widen(bounds.dQ, own.dQ);
    reference::widen(bounds.dK, own.dK);
    reference::widen(bounds.dV, own.dV);
  }
  bounds_.push_back({run.O, run.LSE, std::move(bounds)});
  return bounds_.back().bounds;
}

reference::BackwardBounds Truth::backward_bounds(const Numerics& numerics,
                                                 const reference::Stored& stored) const {
  return reference::backward_bounds(problem_, conventions_, numerics, values_.Q.view(),
                                    values_.K.view(), values_.V.view(), cotangents_, stored,
                                    plain_forward_, backward_);
}

// The bounds are formed again without each term in turn.
std::string Truth::dominating_term(const KernelRun& run, const Comparison& comparison) const {
  const bool of_forward = comparison.output == "O" || comparison.output == "LSE";
  const auto bound = [&](const Numerics& numerics, const reference::Stored& stored) {
    const auto at_worst = [&](const ErrorBound& bounds) {
      const auto& [i, j, k, l] = comparison.worst_index;
      const Tensor& chosen =
          comparison.verdict == Verdict::violated ? bounds.deterministic : bounds.probabilistic;
      return chosen(i, j, k, l);
    };
    if (of_forward) {
      const reference::ForwardBounds bounds =
          reference::forward_bounds(problem_, conventions_, numerics, values_.Q.view(),
                                    values_.K.view(), values_.V.view(), forward_);
      return at_worst(comparison.output == "O" ? bounds.O : bounds.LSE);
    }
    const reference::BackwardBounds bounds = backward_bounds(numerics, stored);
    return at_worst(comparison.output == "dQ"   ? bounds.dQ
                    : comparison.output == "dK" ? bounds.dK
                                                : bounds.dV);
  };
  const reference::Stored stored{run.O.view(), run.LSE.view()};
  double least = std::numeric_limits<double>::infinity();
  std::string_view dominating;
  const auto consider = [&](std::string_view term, double without) {
    if (!(without < least)) return;
    least = without;
    dominating = term;
  };
  for (const WithoutTerm& one : without_each_term(numerics_)) {
    consider(one.term, bound(one.numerics, stored));
  }
  if (!of_forward) {
    consider("stored O and LSE", bound(numerics_, {forward_.O.view(), forward_.LSE.view()}));
  }
  return std::string(dominating);
}

bool Truth::in_domain() const {
  // Scores may err by a few units of their last place; in float32 exp must not overflow for that,
  // nor q.k itself.
  constexpr double kLargestExponent = 80, kLargestProduct = 1e37;
  const double products = largest_row_norm(values_.Q) * largest_row_norm(values_.K);
  const double rounding =
      4 * numerics_.accumulator_roundoff * std::abs(problem_.scale()) * products;
  if (problem_.dtype != DType::f64 &&
      !(rounding < kLargestExponent && products < kLargestProduct)) {
    return false;
  }
  if (problem_.dtype != DType::f16 || direction_ == Direction::forward) return true;
  constexpr double kLargest = 3e4;
  double dP = 0;
  if (numerics_.p_roundoff > 0) {
    // |dS| <= |dP - delta| <= 2 |dO| |V| for every row and key.
    dP = 2 * largest_row_norm(values_.dO) * largest_row_norm(values_.V);
  }
  return dP < kLargest && largest(backward_.dQ) < kLargest && largest(backward_.dK) < kLargest &&
         largest(backward_.dV) < kLargest;
}

std::vector<Comparison> Truth::judge(const KernelRun& run) const {
  std::vector<Comparison> comparisons{compare(run.O.view(), forward_.O, forward_bounds_.O)};
  if ((description_.features & ATTEST_LSE) != 0) {
    comparisons.push_back(compare(run.LSE.view(), forward_.LSE, forward_bounds_.LSE));
  }
  if (direction_ == Direction::backward) {
    const reference::BackwardBounds& bounds = backward_bounds(run);
    comparisons.push_back(compare(run.dQ.view(), backward_.dQ, bounds.dQ));
    comparisons.push_back(compare(run.dK.view(), backward_.dK, bounds.dK));
    comparisons.push_back(compare(run.dV.view(), backward_.dV, bounds.dV));
  }
  return comparisons;
}

std::vector<Comparison> Truth::agreement(const KernelRun& first, const KernelRun& second) const {
  const auto pair = [](const Tensor& a, const Tensor& b, const ErrorBound& x, const ErrorBound& y) {
    return compare_pair(a.view(), b.view(), x, y);
  };
  const reference::ForwardBounds& forward = forward_bounds_;
  std::vector<Comparison> comparisons{pair(first.O, second.O, forward.O, forward.O)};
  if ((description_.features & ATTEST_LSE) != 0) {
    comparisons.push_back(pair(first.LSE, second.LSE, forward.LSE, forward.LSE));
  }
  if (direction_ == Direction::forward) return comparisons;
  const reference::BackwardBounds &a = backward_bounds(first), &b = backward_bounds(second);
  comparisons.push_back(pair(first.dQ, second.dQ, a.dQ, b.dQ));
  comparisons.push_back(pair(first.dK, second.dK, a.dK, b.dK));
  comparisons.push_back(pair(first.dV, second.dV, a.dV, b.dV));
  return comparisons;
}

std::vector<std::string> Truth::passing_decoys(const KernelRun& run) const {
  return direction_ == Direction::forward ? forward_decoys() : backward_decoys(run);
}

std::vector<std::string> Truth::forward_decoys() const {
  const bool has_lse = (description_.features & ATTEST_LSE) != 0;
  std::vector<std::string> passing;
  const auto consider = [&](const std::string& name, const Forward& decoy, bool with_lse) {
    const bool same =
        identical(decoy.O, forward_.O) && (!with_lse || identical(decoy.LSE, forward_.LSE));
    if (same || !passes(decoy.O.view(), forward_.O, forward_bounds_.O)) return;
    if (with_lse && !passes(decoy.LSE.view(), forward_.LSE, forward_bounds_.LSE)) return;
    passing.push_back(name);
  };
  consider("all zeros", {zeros_like(forward_.O), forward_.LSE}, false);
  consider("mean of V", mean_of_values(problem_, conventions_, values_), has_lse);
  for (const Decoy& decoy : other_problems(problem_)) {
    consider(decoy.name,
             reference::forward(decoy.problem, conventions_, values_.Q.view(), values_.K.view(),
                                values_.V.view()),
             has_lse);
  }
  return passing;
}

std::vector<std::string> Truth::backward_decoys(const KernelRun& run) const {
  const reference::BackwardBounds& bounds = backward_bounds(run);
  std::vector<std::string> passing;
  const auto consider = [&](const std::string& name, const reference::Backward& decoy) {
    const bool same = identical(decoy.dQ, backward_.dQ) && identical(decoy.dK, backward_.dK) &&
                      identical(decoy.dV, backward_.dV);
    if (same || !passes(decoy.dQ.view(), backward_.dQ, bounds.dQ) ||
        !passes(decoy.dK.view(), backward_.dK, bounds.dK) ||
        !passes(decoy.dV.view(), backward_.dV, bounds.dV)) {
      return;
    }
    passing.push_back(name);
  };
  consider("all zeros",
           {zeros_like(backward_.dQ), zeros_like(backward_.dK), zeros_like(backward_.dV)});
  for (const Decoy& decoy : other_problems(problem_)) {
    consider(decoy.name, reference::backward(decoy.problem, values_.Q.view(), values_.K.view(),
                                             values_.V.view(), cotangents_));
  }
  return passing;
}

Judgement gravest(const std::vector<Comparison>& comparisons) {
  Judgement judgement;
  for (const Comparison& comparison : comparisons) {
    if (graver(comparison.verdict, judgement.verdict) == judgement.verdict) continue;
    judgement = {comparison.verdict, comparison.reason};
  }
  return judgement;
}

}  // namespace attest::proptest
