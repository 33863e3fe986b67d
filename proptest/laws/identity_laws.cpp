// Sums over a whole head that two gradients must give alike.
#include <algorithm>
#include <cmath>

#include "proptest/laws/catalogue.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

using reference::ErrorBound;

// sum over positions and columns of weights o values, for every batch entry and K/V head; without
// those whose exact value is NaN, as that of rows without a key may be.
struct HeadSums {
  Tensor sum;
  ErrorBound bound;  // sum of |weight| times the bound of the value
};

HeadSums head_sums(const Problem& p, const char* what, const Tensor& weights, const Tensor& values,
                   const Tensor& exact, const ErrorBound& b) {
  const Tensor zero(what, DType::f64,
                    {{"batch", p.tensor_batch(), 0}, {"num_heads_kv", p.num_heads_kv, 0}});
  HeadSums sums{zero, {zero, zero, zero}};
  const std::int64_t heads = weights.view().extent(2);
  mapped(weights, [&](auto n, auto i, auto h, auto x) {
    const std::int64_t kv = h * p.num_heads_kv / heads;
    const auto add = [&](Tensor& to, double value) { to.set(to(n, kv) + value, n, kv); };
    const double w = weights(n, i, h, x);
    if (std::isnan(exact(n, i, h, x))) return w;
    add(sums.sum, w * values(n, i, h, x));
    add(sums.bound.deterministic, std::abs(w) * b.deterministic(n, i, h, x));
    add(sums.bound.probabilistic, std::abs(w) * b.probabilistic(n, i, h, x));
    add(sums.bound.sigma, std::abs(w) * b.sigma(n, i, h, x));
    return w;
  });
  return sums;
}

// Compares two sums of a run. A result that is far off, such as an LSE of -inf, leaves no bound of
// what is made from it: then it is what fails.
LawResult judged_sums(const HeadSums& left, const HeadSums& right, const Solved& s) {
  const auto unbounded = [](const HeadSums& sums) {
    const Tensor& bound = sums.bound.deterministic;
    return std::any_of(bound.doubles(), bound.doubles() + bound.view().size(),
                       [](double one) { return !std::isfinite(one); });
  };
  if (unbounded(left) || unbounded(right)) require_right(s, "");
  return judged_with_truth(
      {compare_pair(left.sum.view(), right.sum.view(), left.bound, right.bound)}, s);
}

// The case's problem, mask and all; heads that share storage would be one variable.
Problem with_own_heads(Problem problem) {
  if (problem.strides == Strides::broadcast) problem.strides = Strides::packed;
  return problem;
}

// sum_j V_j . dV_j = sum_i dO_i . O_i (both are sum P o dP).
LawResult check_gradient_identity(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    const Problem p = with_own_heads(c.problem);
    require_pairs(kernel, p, Direction::backward);
    const Solved s(kernel, p, make_values(p, c.values, c.seed), Direction::backward, c);
    const auto bounds = s.truth.backward_bounds(s.run);
    const HeadSums left = head_sums(p, "sum of V o dV", s.values.V, s.run.dV, s.truth.backward().dV,
                                    bounds.dV),
                   right = head_sums(p, "sum of dO o O", s.values.dO, s.run.O, s.truth.forward().O,
                                     s.truth.forward_bounds().O);
    return judged_sums(left, right, s);
  });
}

// sum_i Q_i . dQ_i = sum_j K_j . dK_j (both are scale * sum dS_ij Q_i . K_j), with gradient of LSE.
LawResult check_score_identity(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    const Problem p = with_own_heads(c.problem);
    require_pairs(kernel, p, Direction::backward);
    const Solved s(kernel, p, make_values(p, c.values, c.seed), Direction::backward, c);
    const auto bounds = s.truth.backward_bounds(s.run);
    const reference::Backward& truth = s.truth.backward();
    const HeadSums left = head_sums(p, "sum of Q o dQ", s.values.Q, s.run.dQ, truth.dQ, bounds.dQ),
                   right = head_sums(p, "sum of K o dK", s.values.K, s.run.dK, truth.dK, bounds.dK);
    LawResult result = judged_sums(left, right, s);
    if (result.verdict != Verdict::passed) return result;
    const Tensor exact = head_sums(p, "exact", s.values.K, truth.dK, truth.dK, bounds.dK).sum;
    for (std::int64_t n = 0; n < p.tensor_batch(); ++n) {
      for (std::int64_t h = 0; h < p.num_heads_kv; ++h) {
        if (std::abs(exact(n, h)) >
            left.bound.probabilistic(n, h) + right.bound.probabilistic(n, h)) {
          return result;
        }
      }
    }
    return LawResult{Verdict::vacuous, "both sums may be 0 within their bounds",
                     result.comparisons};
  });
}

}  // namespace

std::vector<Law> identity_laws() {
  return {{"gradient_identity", "sum V o dV = sum dO o O", check_gradient_identity},
          {"score_identity", "sum Q o dQ = sum K o dK", check_score_identity}};
}

}  // namespace attest::proptest
