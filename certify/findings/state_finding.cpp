#include "certify/findings/state_finding.hpp"

#include <algorithm>

#include "certify/worker/process/isolated_kernel.hpp"
#include "core/error.hpp"
#include "core/features/score_features.hpp"
#include "proptest/values/generator.hpp"

namespace attest::certify {
namespace {

using proptest::Case;
using Cases = std::vector<Case>;

bool same(const Case& a, const Case& b) {
  return a.problem.to_string() == b.problem.to_string() && a.values == b.values &&
         a.seed == b.seed && a.threads == b.threads;
}

// Returns the cases that ran before the check that fails, in a process that carries the sequence
// out again.
std::optional<Cases> prefix_that_fails(const proptest::Law& law, const attest_kernel& kernel,
                                       const Cases& sequence, const Case& failing,
                                       const Alike& alike) {
  worker::restart(kernel);
  Cases prefix;
  for (const Case& c : sequence) {
    const proptest::LawResult result = worker::check(law, kernel, c);
    if (same(c, failing) && alike(result)) return prefix;
    prefix.push_back(c);
  }
  return std::nullopt;
}

// `earlier` as it was in every property but those in which it equalled `from`: they become those of
// `to`. Nothing when that is no case.
std::optional<Case> following(Case earlier, const Case& from, const Case& to) {
  const auto follow = [](auto& value, const auto& was, const auto& is) {
    if (value == was) value = is;
  };
  Problem& p = earlier.problem;
  const Problem &was = from.problem, &is = to.problem;
  for (const auto size :
       {&Problem::batch, &Problem::num_heads_q, &Problem::num_heads_kv, &Problem::seqlen_q,
        &Problem::seqlen_k, &Problem::head_dim_qk, &Problem::head_dim_v}) {
    follow(p.*size, was.*size, is.*size);
  }
  follow(p.dtype, was.dtype, is.dtype);
  follow(p.layout, was.layout, is.layout);
  follow(p.strides, was.strides, is.strides);
  follow(p.softmax_scale, was.softmax_scale, is.softmax_scale);
  for (const ScoreFeature& feature : score_features()) feature.follow(p, was, is);
  if (p.mask.to_string() == was.mask.to_string()) p.mask = is.mask;
  follow(earlier.values, from.values, to.values);
  follow(earlier.seed, from.seed, to.seed);
  follow(earlier.threads, from.threads, to.threads);
  try {
    p = Problem::parse(p.to_string());
  } catch (const InvalidProblem&) {
    return std::nullopt;
  }
  return earlier;
}

std::optional<Cases> all_following(const Cases& earlier, const Case& from, const Case& to) {
  Cases result;
  for (const Case& c : earlier) {
    const std::optional<Case> followed = following(c, from, to);
    if (!followed) return std::nullopt;
    result.push_back(*followed);
  }
  return result;
}

}  // namespace

proptest::LawResult check_after(const proptest::Law& law, const attest_kernel& kernel,
                                const std::vector<Case>& after, const Case& c) {
  worker::restart(kernel);
  for (const Case& earlier : after) worker::check(law, kernel, earlier);
  return worker::check(law, kernel, c);
}

RepeatedCheck check_repeatedly(const proptest::Law& law, const attest_kernel& kernel,
                               const std::vector<Case>& after, const Case& c, int most) {
  if (!after.empty()) worker::restart(kernel);
  for (const Case& earlier : after) worker::check(law, kernel, earlier);
  RepeatedCheck repeated{worker::check(law, kernel, c)};
  const Verdict& verdict = repeated.result.verdict;
  while (repeated.checks < most && verdict != Verdict::violated && verdict != Verdict::crashed) {
    repeated.result = worker::check(law, kernel, c);
    ++repeated.checks;
  }
  return repeated;
}

std::optional<StatefulCase> shortest_history(const proptest::Law& law, const attest_kernel& kernel,
                                             const std::vector<Case>& sequence, const Case& failing,
                                             const Alike& alike) {
  if (!worker::is_isolated(kernel)) return std::nullopt;
  const std::optional<Cases> whole = prefix_that_fails(law, kernel, sequence, failing, alike);
  if (!whole) return std::nullopt;
  StatefulCase found{*whole, failing};
  const auto fails = [&](const Cases& after, const Case& c) {
    return alike(check_after(law, kernel, after, c));
  };
  for (std::size_t part = found.after.size(); part > 0; part /= 2) {
    for (std::size_t begin = 0; begin < found.after.size();) {
      const auto first = found.after.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto count = std::min(part, found.after.size() - begin);
      Cases fewer(found.after.begin(), first);
      fewer.insert(fewer.end(), first + static_cast<std::ptrdiff_t>(count), found.after.end());
      if (fails(fewer, failing)) {
        found.after = std::move(fewer);
      } else {
        begin += part;
      }
    }
  }
  constexpr int kBudget = 150;
  proptest::shrink(
      failing,
      [&](const Case& smaller) {
        const std::optional<Cases> after = all_following(found.after, found.failing, smaller);
        if (!after || !fails(*after, smaller)) return false;
        found = {*after, smaller};
        return true;
      },
      kBudget);
  // An earlier case's own properties are no smaller yet.
  constexpr int kOwnBudget = 40;
  for (std::size_t k = 0; k < found.after.size(); ++k) {
    proptest::shrink(
        found.after[k],
        [&](const Case& smaller) {
          Cases after = found.after;
          after[k] = smaller;
          if (!fails(after, found.failing)) return false;
          found.after = std::move(after);
          return true;
        },
        kOwnBudget);
  }
  return found;
}

}  // namespace attest::certify
