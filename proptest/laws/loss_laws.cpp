// Laws of the loss gradient (Li et al. 2024).
#include <cmath>

#include "core/numerics.hpp"
#include "proptest/judge/loss.hpp"
#include "proptest/laws/catalogue.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

void require_claimed(const attest_kernel& kernel, const Problem& problem) {
  const std::string missing = unclaimed(kernel.description, problem, Direction::loss_gradient);
  if (!missing.empty()) stop(Verdict::unsupported, "not claimed: " + missing);
}

LossRun complete_loss(const attest_kernel& kernel, const Problem& problem, const LossValues& values,
                      const Case& of) {
  LossRun result = run_loss(kernel, problem, values, of);
  require_success(result.status, result.misconduct, result.words, problem);
  return result;
}

LossTruth truth_of(const attest_kernel& kernel, const Problem& problem, const LossValues& values) {
  const std::string uncovered =
      reference::uncovered_by_loss_bounds(resolve(kernel.description.numerics, problem.dtype));
  if (!uncovered.empty()) stop(Verdict::unsupported, uncovered);
  LossTruth truth(kernel.description, problem, values);
  if (!truth.in_domain()) stop(Verdict::unsupported, kOutsideDomain);
  return truth;
}

LawResult judged_with_decoys(const std::vector<Comparison>& comparisons, const LossTruth& truth) {
  LawResult result = judged(comparisons);
  if (result.verdict != Verdict::passed) return result;
  const std::vector<std::string> decoys = truth.passing_decoys();
  if (decoys.empty()) return result;
  return {Verdict::vacuous, "would also pass: " + decoys.front(), result.comparisons};
}

LawResult check_reference(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_claimed(kernel, c.problem);
    const LossValues values = make_loss_values(c.problem, c.values, c.seed);
    const LossTruth truth = truth_of(kernel, c.problem, values);
    return judged_with_decoys(truth.judge(complete_loss(kernel, c.problem, values, c)), truth);
  });
}

// Two runs that should give the same, within the sum of their bounds.
LawResult agreement(const LossRun& second, const LossRun& first, const LossTruth& truth,
                    const attest_kernel& kernel) {
  const reference::LossBounds& bounds = truth.bounds();
  std::vector<Comparison> found{
      compare_pair(second.dX.view(), first.dX.view(), bounds.dX, bounds.dX)};
  if (writes_dy(kernel.description)) {
    found.push_back(compare_pair(second.dY.view(), first.dY.view(), bounds.dY, bounds.dY));
  }
  LawResult result = judged_with_decoys(found, truth);
  result.comparisons.clear();  // not errors against the truth
  return result;
}

LawResult check_layout(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_claimed(kernel, c.problem);
    const bool bits = (kernel.description.features & ATTEST_LAYOUT_BITS) != 0;
    if (bits) require_deterministic(kernel);
    Problem packed = c.problem, other = c.problem;
    packed.strides = Strides::packed;
    if (other.strides == Strides::packed) {
      const bool any = (kernel.description.features & ATTEST_ANY_STRIDES) != 0;
      other.strides = any ? Strides::interleaved : Strides::padded;
    }
    const LossValues values = make_loss_values(c.problem, c.values, c.seed);
    const LossRun first = complete_loss(kernel, packed, values, c);
    const LossRun second = complete_loss(kernel, other, values, c);
    if (!bits) return agreement(second, first, truth_of(kernel, c.problem, values), kernel);
    std::vector<Comparison> found{compare_bits(second.dX.view(), first.dX.view())};
    if (writes_dy(kernel.description)) {
      found.push_back(compare_bits(second.dY.view(), first.dY.view()));
    }
    return judged(found);
  });
}

// factor * tensor, exact for powers of two.
Tensor scaled(const Tensor& tensor, double factor) {
  Tensor result = tensor;
  for (std::int64_t e = 0; e < tensor.view().size(); ++e) result.doubles()[e] *= factor;
  return result;
}

// Rows in the opposite order.
Tensor reversed(const Tensor& tensor) {
  Tensor result = tensor;
  const std::int64_t rows = tensor.view().extent(0);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t c = 0; c < tensor.view().extent(1); ++c) {
      result.set(tensor(rows - 1 - i, c), i, c);
    }
  }
  return result;
}

// factor * first; where `first` is subnormal, and so may have lost bits that `second` keeps, what
// `second` is. The smallest normal number may be a subnormal one, rounded up.
Tensor times(const Tensor& first, double factor, const Tensor& second) {
  const DType dtype = first.view().dtype();
  const double smallest_normal = underflow_unit(dtype) / unit_roundoff(dtype);
  Tensor result = second;
  for (std::int64_t i = 0; i < first.view().extent(0); ++i) {
    for (std::int64_t j = 0; j < first.view().extent(1); ++j) {
      if (std::abs(first(i, j)) <= smallest_normal) continue;
      result.set(factor * first(i, j), i, j);
    }
  }
  return result;
}

// c is linear in (Y, E) and h in Y, and doubling commutes with every rounding.
LawResult check_homogeneity(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_claimed(kernel, c.problem);
    require_deterministic(kernel);
    // Plain values: no product of theirs comes near the smallest or the largest number.
    const LossValues once = make_loss_values(c.problem, Values::normal, c.seed);
    LossValues twice = once;
    twice.Y = scaled(once.Y, 2);
    twice.E = scaled(once.E, 2);
    const LossRun first = complete_loss(kernel, c.problem, once, c);
    const LossRun second = complete_loss(kernel, c.problem, twice, c);
    std::vector<Comparison> found{
        compare_bits(second.dX.view(), times(first.dX, 4, second.dX).view())};
    if (writes_dy(kernel.description)) {
      found.push_back(compare_bits(second.dY.view(), times(first.dY, 2, second.dY).view()));
    }
    return judged(found);
  });
}

LawResult check_permutation(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_claimed(kernel, c.problem);
    if (c.problem.seqlen_q == 1) stop(Verdict::vacuous, "one row has one order");
    const LossValues values = make_loss_values(c.problem, c.values, c.seed);
    const LossTruth truth = truth_of(kernel, c.problem, values);
    const LossRun first = complete_loss(kernel, c.problem, values, c);
    LossValues keys = values, queries = values;
    keys.A2 = reversed(values.A2);
    keys.A3 = reversed(values.A3);
    queries.A1 = reversed(values.A1);
    queries.E = reversed(values.E);
    const reference::LossBounds& bounds = truth.bounds();
    std::vector<Comparison> found;
    for (const LossValues* permuted : {&keys, &queries}) {
      const LossRun second = complete_loss(kernel, c.problem, *permuted, c);
      found.push_back(compare_pair(second.dX.view(), first.dX.view(), bounds.dX, bounds.dX));
      if (!writes_dy(kernel.description)) continue;
      found.push_back(compare_pair(second.dY.view(), first.dY.view(), bounds.dY, bounds.dY));
    }
    LawResult result = judged_with_decoys(found, truth);
    result.comparisons.clear();  // not errors against the truth
    return result;
  });
}

}  // namespace

std::vector<Law> loss_laws() {
  return {
      {"reference_loss", "dX and dY lie within their derived bounds of the loss's gradients",
       check_reference, ATTEST_LOSS_GRADIENT},
      {"loss_layout", "strides change dX and dY within their bounds; no bit of them where claimed",
       check_layout, ATTEST_LOSS_GRADIENT},
      {"loss_homogeneity", "doubling Y and E quadruples dX and doubles dY, exactly",
       check_homogeneity, ATTEST_LOSS_GRADIENT},
      {"loss_permutation", "reversing A2 with A3, or A1 with E, changes neither dX nor dY",
       check_permutation, ATTEST_LOSS_GRADIENT}};
}

}  // namespace attest::proptest
