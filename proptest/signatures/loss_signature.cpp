#include "proptest/signatures/loss_signature.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/dtype/dtype_range.hpp"
#include "core/error.hpp"
#include "core/numerics.hpp"
#include "core/rng.hpp"
#include "proptest/signatures/loss_alternatives.hpp"
#include "proptest/values/generator.hpp"

namespace attest::proptest {
namespace {

// One completed case, compared with the truth. Not copyable: LossTruth refers to its neighbours.
class Played {
 public:
  Played(const attest_kernel& kernel, const Case& c)
      : problem_(c.problem),
        values_(make_loss_values(problem_, c.values, c.seed)),
        truth_(kernel.description, problem_, values_),
        run_(run_loss(kernel, problem_, values_, c)) {
    if (!completed()) return;
    for (const Comparison& comparison : truth_.judge(run_)) {
      if (comparison.verdict != Verdict::passed) refused_.insert(comparison.output);
    }
    alternatives_ = loss_alternatives(kernel.description, problem_, values_, truth_);
  }
  Played(const Played&) = delete;
  Played& operator=(const Played&) = delete;

  bool completed() const {
    return run_.status == ATTEST_OK && run_.misconduct.empty() && truth_.in_domain();
  }
  bool wrong() const { return !refused_.empty(); }
  const std::vector<Alternative>& alternatives() const { return alternatives_; }

  // Tells whether every output is the alternative's.
  bool equals(const Alternative& alternative) const {
    return std::all_of(alternative.outputs.begin(), alternative.outputs.end(),
                       [&](const Expected& expected) {
                         return passes(got(expected), expected.value, expected.bound);
                       });
  }

  // Tells whether the alternative would be refused where the kernel was.
  bool tells_apart(const Alternative& alternative) const {
    return std::any_of(
        alternative.outputs.begin(), alternative.outputs.end(), [&](const Expected& expected) {
          const bool of_x = expected.output == "dX";
          return refused_.count(expected.output) > 0 &&
                 !passes(expected.value.view(), of_x ? truth_.exact().dX : truth_.exact().dY,
                         of_x ? truth_.bounds().dX : truth_.bounds().dY);
        });
  }

  // Tells whether the mistake leaves the dtype's range, where its bounds say nothing.
  bool leaves_range(const Alternative& alternative) const {
    const double largest = has_narrow_range(problem_.dtype) ? 3e4 : 1e37;
    return std::any_of(
        alternative.outputs.begin(), alternative.outputs.end(), [&](const Expected& expected) {
          const double* values = expected.value.doubles();
          return std::any_of(values, values + expected.value.view().size(),
                             [&](double value) { return !(std::abs(value) < largest); });
        });
  }

 private:
  const TensorView& got(const Expected& expected) const {
    return expected.output == "dX" ? run_.dX.view() : run_.dY.view();
  }

  Problem problem_;
  LossValues values_;
  LossTruth truth_;
  LossRun run_;
  std::set<std::string> refused_;
  std::vector<Alternative> alternatives_;
};

// Nothing where the kernel did not complete the case, or there is nothing to compare with.
std::unique_ptr<Played> play(const attest_kernel& kernel, const Case& c) {
  constexpr double kMostProducts = 0x1p20;
  const Problem& p = c.problem;
  const double products = static_cast<double>(p.seqlen_q) * static_cast<double>(p.seqlen_k) *
                          static_cast<double>(p.head_dim_qk);
  const Numerics numerics = resolve(kernel.description.numerics, p.dtype);
  if (products > kMostProducts || !reference::uncovered_by_loss_bounds(numerics).empty() ||
      !unclaimed(kernel.description, p, Direction::loss_gradient).empty()) {
    return nullptr;
  }
  try {
    auto one = std::make_unique<Played>(kernel, c);
    return one->completed() ? std::move(one) : nullptr;
  } catch (const InvalidProblem&) {  // values without an answer
    return nullptr;
  }
}

// Cases like the shrunk one, larger and with other values, and some of everything.
std::vector<Case> others(const attest_kernel& kernel, const Case& shrunk, const Case& found) {
  constexpr std::int64_t kLike = 4;
  constexpr std::uint64_t kGenerated = 12;
  std::vector<Case> cases;
  for (std::int64_t step = 0; step < kLike; ++step) {
    Case c = found;
    c.values = Values::normal;
    c.seed = mix(shrunk.seed, static_cast<std::uint64_t>(step));
    if (step > 0) c.problem.seqlen_q = c.problem.seqlen_k = shrunk.problem.seqlen_q + 3 * step;
    cases.push_back(c);
  }
  for (std::uint64_t index = 0; index < kGenerated; ++index) {
    cases.push_back(generate(kernel.description, Tier::smoke, shrunk.seed, index));
  }
  return cases;
}

// Tells whether the kernel's results on a case are not those of the mistake.
bool contradicts(const Played& one, const std::string& name) {
  return std::none_of(one.alternatives().begin(), one.alternatives().end(),
                      [&](const Alternative& alternative) {
                        return alternative.name == name &&
                               (one.equals(alternative) || one.leaves_range(alternative));
                      });
}

}  // namespace

std::vector<Signature> loss_signatures_of(const attest_kernel& kernel, const Case& shrunk,
                                          const Case& found) {
  std::vector<std::unique_ptr<Played>> played;
  std::map<std::string, std::string> suspects;  // statements by name
  for (const Case& c : {shrunk, found}) {
    if (auto one = play(kernel, c)) played.push_back(std::move(one));
  }
  for (const auto& one : played) {
    for (const Alternative& alternative : one->alternatives()) {
      if (one->tells_apart(alternative) && one->equals(alternative)) {
        suspects.emplace(alternative.name, alternative.statement);
      }
    }
  }
  if (suspects.empty()) return {};
  for (const Case& c : others(kernel, shrunk, found)) {
    if (auto one = play(kernel, c)) played.push_back(std::move(one));
  }
  std::vector<Signature> signatures;
  for (const auto& [name, statement] : suspects) {
    const bool stands =
        std::none_of(played.begin(), played.end(),
                     [&, &suspect = name](const auto& one) { return contradicts(*one, suspect); });
    if (stands) signatures.push_back({name, statement});
  }
  return signatures;
}

}  // namespace attest::proptest
