#include "proptest/signatures/signature.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "proptest/generator.hpp"
#include "proptest/laws/level.hpp"
#include "proptest/laws/trial.hpp"
#include "proptest/signatures/alternative.hpp"
#include "proptest/signatures/loss_signature.hpp"

namespace attest::proptest {
namespace {

// The pass in which a kernel went wrong.
enum class Pass : std::uint8_t { none, forward, backward };

bool affordable(const Problem& p) {
  constexpr double kMostProducts = 0x1p21;
  return static_cast<double>(p.batch * p.num_heads_q) * static_cast<double>(p.seqlen_q) *
             static_cast<double>(p.seqlen_k) * static_cast<double>(p.head_dim_qk + p.head_dim_v) <=
         kMostProducts;
}

const Tensor& output_of(const KernelRun& run, const std::string& name) {
  if (name == "O") return run.O;
  if (name == "LSE") return run.LSE;
  if (name == "dQ") return run.dQ;
  return name == "dK" ? run.dK : run.dV;
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

// One case, run and compared with the truth. Not copyable: Truth refers to its neighbours.
class Played {
 public:
  Played(const attest_kernel& kernel, const Case& c, InputValues values)
      : case_(c),
        description_(kernel.description),
        direction_(furthest(kernel, case_.problem)),
        solved_(kernel, case_.problem, std::move(values), direction_, case_) {
    for (const Comparison& comparison : solved_.truth.judge(solved_.run)) {
      if (comparison.verdict == Verdict::passed) continue;
      refused_.insert(comparison.output);
    }
  }
  Played(const Played&) = delete;
  Played& operator=(const Played&) = delete;

  Pass wrong() const {
    if (refused_.count("O") + refused_.count("LSE") > 0) return Pass::forward;
    return refused_.empty() ? Pass::none : Pass::backward;
  }
  bool ran_backward() const { return direction_ == Direction::backward; }

  std::vector<Alternative> alternatives(Pass pass, Suspects only) const {
    const Scene scene{description_, case_.problem, solved_.values, direction_,
                      case_.seed,   solved_.truth, solved_.run};
    return pass == Pass::forward ? forward_alternatives(scene, only)
                                 : backward_alternatives(scene, only);
  }

  // Whether every output is the alternative's.
  bool equals(const Alternative& alternative) const {
    return std::all_of(
        alternative.outputs.begin(), alternative.outputs.end(), [&](const Expected& expected) {
          const TensorView& got = output_of(solved_.run, expected.output).view();
          const reference::ErrorBound& bound = expected.bound;
          return compare(got, within_range(expected.value, got.dtype()),
                         {without_nan(bound.deterministic), without_nan(bound.probabilistic),
                          without_nan(bound.sigma)})
                     .verdict == Verdict::passed;
        });
  }

  // Whether the mistake leaves the dtype's range, where its bounds say nothing. A gradient without
  // a limit has left it; an LSE of -inf is an answer.
  bool leaves_range(const Alternative& alternative) const {
    const double largest = case_.problem.dtype == DType::f16 ? 3e4 : 1e37;  // as Truth::in_domain
    const auto leaves = [&](const Expected& expected) {
      const bool gradient = expected.output[0] == 'd';
      const double* values = expected.value.doubles();
      return std::any_of(values, values + expected.value.view().size(), [&](double value) {
        return std::isfinite(value) ? std::abs(value) >= largest : gradient;
      });
    };
    return std::any_of(alternative.outputs.begin(), alternative.outputs.end(), leaves);
  }

  // Whether the alternative would be refused where the kernel was.
  bool tells_apart(const Alternative& alternative) const {
    return std::any_of(alternative.outputs.begin(), alternative.outputs.end(),
                       [&](const Expected& expected) {
                         return refused_.count(expected.output) > 0 && refuses(expected);
                       });
  }

 private:
  bool refuses(const Expected& expected) const {
    const auto differs = [&](const Tensor& exact, const reference::ErrorBound& bound) {
      return compare(expected.value.view(), exact, bound).verdict != Verdict::passed;
    };
    const Truth& truth = solved_.truth;
    if (expected.output == "O") return differs(truth.forward().O, truth.forward_bounds().O);
    if (expected.output == "LSE") return differs(truth.forward().LSE, truth.forward_bounds().LSE);
    const reference::BackwardBounds& bounds = truth.backward_bounds(solved_.run);
    if (expected.output == "dQ") return differs(truth.backward().dQ, bounds.dQ);
    if (expected.output == "dK") return differs(truth.backward().dK, bounds.dK);
    return differs(truth.backward().dV, bounds.dV);
  }

  Case case_;
  const attest_description& description_;
  Direction direction_;
  Solved solved_;
  std::set<std::string> refused_;
};

// With the values of a case as they are, or as the law `score_level` shifts them.
enum class Level : std::uint8_t { own, shifted };

// Nothing where the kernel did not complete the case, or there is nothing to compare with.
std::unique_ptr<Played> play(const attest_kernel& kernel, const Case& c, Level level) {
  if (!affordable(c.problem)) return nullptr;
  try {
    if (level == Level::own) {
      return std::make_unique<Played>(kernel, c, make_values(c.problem, c.values, c.seed));
    }
    Levelled levelled = at_level(kernel.description, c);
    Case shifted = c;
    shifted.problem = levelled.problem;
    return std::make_unique<Played>(kernel, shifted, std::move(levelled.values));
  } catch (const Stopped&) {
    return nullptr;
  } catch (const InvalidProblem&) {  // values without an answer
    return nullptr;
  }
}

// Cases like the shrunk one, larger and with other values, and some of everything.
std::vector<Case> others(const attest_kernel& kernel, const Case& shrunk, const Case& found) {
  constexpr std::uint64_t kLike = 4, kGenerated = 16;
  std::vector<Case> cases;
  for (std::uint64_t index = 0; index < kLike; ++index) {
    Case c = found;
    c.values = Values::normal;
    c.seed = mix(shrunk.seed, index);
    const Pattern& mask = c.problem.mask;
    if (index > 0 && !mask.boolean && !mask.packed() && mask.key_lengths.empty()) {
      const auto step = static_cast<std::int64_t>(index);
      c.problem.seqlen_q = shrunk.problem.seqlen_q + 3 * step;
      c.problem.seqlen_k = shrunk.problem.seqlen_k + 5 * step;
    }
    cases.push_back(c);
  }
  // A boolean mask alone, which tells one kind of mask from all.
  if ((kernel.description.features & ATTEST_BOOLEAN_MASK) != 0 && !shrunk.problem.mask.packed()) {
    constexpr std::int64_t kKeys = 8;
    Case c = shrunk;
    c.values = Values::normal;
    c.problem.seqlen_q = c.problem.seqlen_k = kKeys;
    c.problem.mask = Pattern::parse("random_50_1", kKeys, kKeys);
    cases.push_back(c);
  }
  for (std::uint64_t index = 0; index < kGenerated; ++index) {
    cases.push_back(generate(kernel.description, Tier::smoke, shrunk.seed, index));
  }
  return cases;
}

// The shrunk case with as many keys as tiles have, at the same level: they tell tiles apart.
std::vector<Case> whole_tiles(const attest_kernel& kernel, const Case& shrunk) {
  std::vector<Case> cases;
  const Pattern& mask = shrunk.problem.mask;
  if (mask.boolean || mask.packed() || !mask.key_lengths.empty()) return cases;
  for (const std::int64_t keys : {8, 16, 32, 64, 128}) {
    Case c = shrunk;
    c.problem.seqlen_k = keys;
    if ((kernel.description.features & ATTEST_CROSS_LENGTHS) == 0) c.problem.seqlen_q = keys;
    cases.push_back(c);
  }
  return cases;
}

// Whether the kernel's results on a case are not the suspect's. Where the mistake does not apply to
// the case, a right result contradicts nothing.
bool contradicts(const Played& one, Pass pass, const std::vector<Alternative>& alternatives,
                 const Suspect& suspect) {
  bool applies = false;
  for (const Alternative& alternative : alternatives) {
    if (Suspect(alternative.name, alternative.statement) != suspect) continue;
    if (one.equals(alternative) || one.leaves_range(alternative)) return false;
    applies = true;
  }
  return applies || one.wrong() == pass;
}

// Each name once; of two that nothing the kernel claims tells apart, the narrower.
std::vector<Signature> named(const std::set<Suspect>& suspects) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kNarrower{
      {{"maximum_from_zero", "pads_in_maximum"},
       {"causal_one_more", "right_one_more"},
       {"band_ignored", "mask_ignored"},
       {"boolean_mask_ignored", "mask_ignored"},
       {"lse_of_first_head_for_one_query", "lse_of_first_head"},
       {"first_key_length_for_one_query", "first_key_length"}}};
  std::set<std::string> names, left_out;
  for (const auto& [name, statement] : suspects) names.insert(name);
  for (const auto& [narrow, wide] : kNarrower) {
    if (names.count(std::string(narrow)) > 0) left_out.insert(std::string(wide));
  }
  std::vector<Signature> signatures;
  for (const auto& [name, statement] : suspects) {
    if (left_out.insert(name).second) signatures.push_back({name, statement});
  }
  return signatures;
}

}  // namespace

std::vector<Signature> signatures_of(const attest_kernel& kernel, const Case& shrunk,
                                     const Case& found) {
  if ((kernel.description.directions & (ATTEST_FORWARD | ATTEST_BACKWARD)) == 0) {
    return loss_signatures_of(kernel, shrunk, found);
  }
  std::vector<std::unique_ptr<Played>> played;
  const auto add = [&](const Case& c, Level level) {
    if (auto one = play(kernel, c, level)) played.push_back(std::move(one));
  };
  for (const Case& c : {shrunk, found}) add(c, Level::own);
  const bool ordinary = std::any_of(played.begin(), played.end(),
                                    [](const auto& one) { return one->wrong() != Pass::none; });
  if (!ordinary) {
    for (const Case& c : {shrunk, found}) add(c, Level::shifted);
  }
  Pass pass = Pass::none;
  std::set<Suspect> suspects;
  for (const auto& one : played) {
    if (pass == Pass::none) pass = one->wrong();
    if (pass == Pass::none || one->wrong() != pass) continue;
    for (const Alternative& alternative : one->alternatives(pass, nullptr)) {
      if (one->tells_apart(alternative) && one->equals(alternative)) {
        suspects.insert({alternative.name, alternative.statement});
      }
    }
  }
  if (suspects.empty()) return {};
  for (const Case& c : others(kernel, shrunk, found)) {
    add(c, Level::own);
    if (!ordinary) add(c, Level::shifted);
  }
  if (!ordinary) {
    for (const Case& c : whole_tiles(kernel, shrunk)) add(c, Level::shifted);
  }
  for (const auto& one : played) {
    if (suspects.empty()) break;
    if (pass == Pass::backward && (!one->ran_backward() || one->wrong() == Pass::forward)) continue;
    const std::vector<Alternative> alternatives = one->alternatives(pass, &suspects);
    for (auto suspect = suspects.begin(); suspect != suspects.end();) {
      suspect = contradicts(*one, pass, alternatives, *suspect) ? suspects.erase(suspect)
                                                                : std::next(suspect);
    }
  }
  return named(suspects);
}

}  // namespace attest::proptest
