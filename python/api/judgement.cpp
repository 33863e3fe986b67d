#include "python/api/judgement.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "proptest/judge/truth/sample.hpp"
#include "proptest/laws/trials/trial.hpp"
#include "proptest/signatures/signature.hpp"
#include "python/api/contract.hpp"

namespace attest::python {
namespace {

using proptest::Comparison;
using proptest::KernelRun;
using proptest::Truth;

Truth truth_of(const AttentionCall& call, const attest_description& description) {
  return Truth(description, call.problem, call.values, call.direction, call.seed,
               proptest::sample_of(call.problem, call.seed));
}

// Returns the first output with the gravest verdict. One without a bound is graver than one that
// passed.
const Comparison& worst_of(const std::vector<Comparison>& compared) {
  const auto rank = [](const Comparison& one) {
    if (one.verdict == Verdict::violated) return 3;
    if (one.verdict == Verdict::improbable) return 2;
    return one.verdict == Verdict::passed ? 0 : 1;
  };
  return *std::max_element(
      compared.begin(), compared.end(),
      [&](const Comparison& a, const Comparison& b) { return rank(a) < rank(b); });
}

// Returns lines about the mistakes, where the problem is small enough to work out every one.
std::string mistakes(const AttentionCall& call, const Truth& truth, const KernelRun& run) {
  constexpr double kMostProducts = 0x1p26;
  const Problem& p = call.problem;
  const double products = static_cast<double>(p.batch * p.num_heads_q * p.seqlen_q) *
                          static_cast<double>(p.seqlen_k * (p.head_dim_qk + p.head_dim_v));
  if (products > kMostProducts || proptest::judged_by_sample(p)) return "";
  std::string text;
  for (const proptest::Signature& one : proptest::signatures_of(
           {call.description, p, call.values, call.direction, call.seed, truth, run})) {
    text += "\nequals " + one.statement;
  }
  return text;
}

// Returns a line about the narrowest preset under which every output would pass.
std::string other_contract(const AttentionCall& call, const KernelRun& run) {
  if (call.problem.dtype == DType::f64) return "";  // no preset's arithmetic is meant
  for (const Preset& preset : presets()) {
    attest_description other = call.description;
    other.numerics = parse_contract(preset.name).numerics;
    other.numerics.lse_base_two = call.description.numerics.lse_base_two;
    if (worst_of(truth_of(call, other).judge(run)).verdict != Verdict::passed) continue;
    return std::string("\nwould pass with numerics ") + preset.name +
           "; give it where the kernel does so";
  }
  return "";
}

// Says which case it is of.
std::string case_words(const AttentionCall& call) {
  return "\nproblem " + call.problem.to_string() + "\nnumerics " + call.contract;
}

Judgement refused(const AttentionCall& call, const Truth& truth, const KernelRun& run,
                  const Comparison& worst) {
  const std::string term = truth.dominating_term(run, worst);
  return {ATTEST_REFUSED,
          worst.reason +
              (term.empty() ? "" : "\nlargest term of the bound of " + worst.output + ": " + term) +
              mistakes(call, truth, run) + other_contract(call, run) + case_words(call)};
}

Judgement nothing_proved(const AttentionCall& call, const std::string& why) {
  return {ATTEST_NOTHING_PROVED, "nothing is proved: " + why + case_words(call)};
}

// Tells whether each element of (batch, seqlen, heads, columns) is as `expected` says.
template <class Expected>
bool holds(const TensorView& view, const Expected& expected) {
  for (std::int64_t b = 0; b < view.extent(0); ++b) {
    for (std::int64_t i = 0; i < view.extent(1); ++i) {
      for (std::int64_t h = 0; h < view.extent(2); ++h) {
        for (std::int64_t d = 0; d < view.extent(3); ++d) {
          if (view(b, i, h, d) != expected(b, h, d)) return false;
        }
      }
    }
  }
  return true;
}

bool same_for_every_key(const TensorView& view) {
  return holds(view, [&](auto b, auto h, auto d) { return view(b, 0, h, d); });
}

// Counts the visible pairs of all heads.
std::int64_t seen_pairs(const Problem& p) {
  if (p.head_mask.kind == HeadMask::Kind::none) return p.visible_pairs() * p.num_heads_q;
  std::int64_t pairs = 0;
  for (const Sequence& sequence : p.sequences()) {
    for (std::int64_t h = 0; h < p.num_heads_q; ++h) {
      for (std::int64_t i = 0; i < sequence.queries(); ++i) {
        for (std::int64_t j = 0; j < sequence.visible_keys; ++j) {
          if (p.mask.visible(sequence, i, j) && p.head_mask(sequence.number, h, i, j)) ++pairs;
        }
      }
    }
  }
  return pairs;
}

// Says why forward's result would be the same whatever Q and K hold; "" where it would not.
// Decoys that equal the exact result do not tell: a problem of one key has them, too.
std::string scores_without_effect(const AttentionCall& call) {
  const Problem& p = call.problem;
  std::int64_t queries = 0;
  for (const Sequence& sequence : p.sequences()) queries += sequence.queries();
  // Some query sees more keys than one.
  const bool choice = seen_pairs(p) > queries * p.num_heads_q;
  if (!choice || call.direction != Direction::forward) return "";
  const bool equal = p.scale() == 0 ||
                     holds(call.values.Q.view(), [](auto, auto, auto) { return 0.0; }) ||
                     same_for_every_key(call.values.K.view());
  const bool told = p.alibi != Alibi::none || p.bias.kind != Bias::Kind::none;
  if (equal && !told) return "all scores of a query are equal; give other Q and K";
  const bool lse = (call.description.features & ATTEST_LSE) != 0;
  if (!lse && p.sinks == Sinks::none && same_for_every_key(call.values.V.view())) {
    return "V is the same for every key, so that no score matters; give another V, or the LSE";
  }
  return "";
}

// Tells whether the result of a call without the sinks would pass too. In backward dSinks tells.
bool sinks_without_effect(const AttentionCall& call, const KernelRun& run) {
  const std::vector<float> sinks = call.problem.sink_scores();
  const bool some =
      std::any_of(sinks.begin(), sinks.end(), [](float s) { return std::isfinite(s); });
  if (!some || call.direction != Direction::forward) return false;
  AttentionCall without = call;
  without.problem.sinks = Sinks::none;
  return worst_of(truth_of(without, call.description).judge(run)).verdict == Verdict::passed;
}

// The same of a bias. In backward dBias tells.
bool bias_without_effect(const AttentionCall& call, const KernelRun& run) {
  const Bias& bias = call.problem.bias;
  const bool some = bias.kind == Bias::Kind::given &&
                    std::any_of(bias.given->values.begin(), bias.given->values.end(),
                                [](double value) { return value != 0; });
  if (!some || call.direction != Direction::forward) return false;
  AttentionCall without = call;
  without.problem.bias = {};
  return worst_of(truth_of(without, call.description).judge(run)).verdict == Verdict::passed;
}

}  // namespace

void require_bounds(const AttentionCall& call) {
  const std::string uncovered = reference::uncovered_by_attention_bounds(
      resolve(call.description.numerics, call.problem.dtype));
  if (!uncovered.empty()) throw InvalidProblem("numerics: " + uncovered);
}

Judgement judge(const AttentionCall& call, const KernelRun& run) {
  require_bounds(call);
  const Truth truth = truth_of(call, call.description);
  if (!truth.in_domain()) return nothing_proved(call, proptest::kOutsideDomain);
  const std::vector<Comparison> compared = truth.judge(run);
  const Comparison& worst = worst_of(compared);
  if (worst.verdict == Verdict::vacuous) return nothing_proved(call, worst.reason);
  if (worst.verdict != Verdict::passed) return refused(call, truth, run, worst);
  if (seen_pairs(call.problem) == 0) return nothing_proved(call, "no query sees a key");
  if (const std::string why = scores_without_effect(call); !why.empty()) {
    return nothing_proved(call, why);
  }
  if (sinks_without_effect(call, run)) {
    return nothing_proved(call, "the sinks are too small to tell from none; give larger ones");
  }
  if (bias_without_effect(call, run)) {
    return nothing_proved(call, call.problem.bias.axes[3]
                                    ? "the bias is too small to tell from none; give a larger one"
                                    : "a bias that is the same for all keys shows in LSE alone; "
                                      "give the LSE, and one that is not 0");
  }
  const std::vector<std::string> decoys = truth.passing_decoys(run);
  if (decoys.empty()) return {};
  return nothing_proved(call, "these inputs cannot tell it from a wrong result, '" +
                                  decoys.front() + "'; give others");
}

}  // namespace attest::python
