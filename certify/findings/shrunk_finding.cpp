#include "certify/findings/shrunk_finding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "certify/findings/state_finding.hpp"
#include "certify/findings/thread_race.hpp"
#include "certify/plan/plan.hpp"
#include "certify/worker/process/isolated_kernel.hpp"
#include "core/error.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::certify {
namespace {

using proptest::Case;
using proptest::Law;
using proptest::LawResult;

// Masked ones counted.
std::int64_t pairs_of_rows_and_keys(const Problem& problem) {
  std::int64_t pairs = 0;
  for (const Sequence& sequence : problem.sequences())
    pairs += sequence.q_length * sequence.k_length;
  return pairs * problem.num_heads_q;
}

// Pairs of a mask that a law makes are of no family: no line could name them.
bool has_spelling(const Problem& problem) {
  try {
    return Problem::parse(problem.to_string()).to_string() == problem.to_string();
  } catch (const InvalidProblem&) {
    return false;
  }
}

class Shrinker {
 public:
  Shrinker(const attest_kernel& kernel, Finding& finding, const Interrupted& interrupted)
      : kernel_(kernel),
        finding_(finding),
        law_(proptest::find_law(finding.law)),
        fault_(worker::kind_in(finding.message)),
        interrupted_(interrupted) {}

  // An address that was computed wrongly meets memory of an earlier call where there was one; the
  // line that runs the finding again has a process of its own, and finds what that one does.
  void note_first_call() {
    if (fault_ != worker::FaultKind::stale_memory) return;
    worker::restart(kernel_);
    const LawResult first = worker::check(law_, kernel_, finding_.found);
    const auto kind = worker::kind_in(first.message);
    if (!kind) return;
    fault_ = kind;
    finding_.verdict = first.verdict;
    finding_.message = first.message;
  }

  // Smaller cases are tried as long as they have few pairs in all: those of a long problem cost
  // seconds each.
  void shrink() {
    constexpr int kMostChecks = 200, kMostHangs = 12, kLeastChecks = 8;
    constexpr std::int64_t kMostPairs = std::int64_t{1} << 27;
    const bool hang = fault_ == worker::FaultKind::hang;
    int checks = 0;
    std::int64_t pairs = 0;
    finding_.shrunk = proptest::shrink(
        with_rows_and_keys(),
        [&](const Case& smaller) {
          pairs += pairs_of_rows_and_keys(smaller.problem);
          const bool spent = ++checks > kLeastChecks && pairs > kMostPairs;
          if (spent || interrupted_()) return false;
          const LawResult tried = worker::check(law_, kernel_, smaller);
          if (!alike(tried)) return false;
          finding_.message = tried.message;
          return true;
        },
        hang ? kMostHangs : kMostChecks);
  }

  // A law may call with a problem that it makes of the case's. Where that fails alike as the case,
  // and is called as it is, it says more: the probes of a causal kernel have a causal mask.
  void take_called_problem() {
    if (fault_ == worker::FaultKind::hang) return;
    const auto called_with = [this](const Case& c) {
      proptest::problem_of_last_run().reset();
      const LawResult result = worker::check(law_, kernel_, c);
      return std::pair{result, proptest::problem_of_last_run()};
    };
    const auto [first, problem] = called_with(finding_.shrunk);
    Case called = finding_.shrunk;
    if (!problem || !has_spelling(*problem) || !alike(first)) return;
    if (problem->to_string() == called.problem.to_string()) return;
    called.problem = *problem;
    const auto [again, kept] = called_with(called);
    const bool as_it_is = kept && kept->to_string() == called.problem.to_string();
    if (!as_it_is || !alike(again)) return;
    finding_.shrunk = called;
    finding_.message = again.message;
  }

  // Tells whether the case fails with several threads alone; the message then says how often.
  bool note_threads() {
    if (fault_ == worker::FaultKind::hang) return false;
    const Race race = race_of(law_, kernel_, finding_.shrunk,
                              [this](const LawResult& result) { return alike(result); });
    finding_.message = race.words + finding_.message;
    finding_.checks = race.checks;
    return !race.words.empty();
  }

  // A case that fails only after others says so, for its line alone would not reproduce it.
  void note_state(const std::vector<Case>& sequence) {
    constexpr auto kMostChecks = static_cast<int>(kBatchLength + kLongSoak);
    const auto checks = worker::checks_until_failure(law_, kernel_, finding_.shrunk, kMostChecks);
    if (fault_ != worker::FaultKind::hang && checks && note_chance(*checks, kMostChecks)) return;
    if (checks == 1) return;
    if (checks) {
      finding_.checks = *checks;
      finding_.message =
          "state: check " + std::to_string(*checks) +
          " of this case in one process fails, those before it do not: " + finding_.message;
      return;
    }
    const auto found = shortest_history(law_, kernel_, sequence, finding_.found,
                                        [this](const LawResult& result) { return alike(result); });
    if (!found) {
      finding_.message =
          "chance: failed in this campaign, and not where its checks were made again: " +
          finding_.message;
      return;
    }
    finding_.after = found->after;
    finding_.shrunk = found->failing;
    const int failed = times_failing(*found);
    if (failed < kProcesses) {
      finding_.checks = finding_.after.empty() ? kOdds * kProcesses / std::max(failed, 1) : 1;
      finding_.message =
          fmt::format("chance: fails in {} of {} processes that make the same checks: {}", failed,
                      kProcesses, finding_.message);
      return;
    }
    const std::size_t count = found->after.size();
    if (count == 0) return;  // by itself, where no smaller case was checked before it
    finding_.message = "state: fails after " +
                       (count == 1 ? "another check" : std::to_string(count) + " other checks") +
                       " in one process, and not without: " + finding_.message;
  }

 private:
  static constexpr int kProcesses = 4;
  static constexpr int kOdds = 5;  // so many that it fails in one of them but for one time in e^5

  // In how many processes of the same checks it fails; the message becomes that of a failure.
  int times_failing(const StatefulCase& found) const {
    int failed = 0;
    for (int process = 0; process < kProcesses; ++process) {
      const LawResult again = check_after(law_, kernel_, found.after, found.failing);
      if (!alike(again)) continue;
      finding_.message = again.message;
      ++failed;
    }
    return failed;
  }

  // Tells whether it fails at another check in other processes: chance, and a race where it does
  // not with one thread. The message then says so.
  bool note_chance(int first, int most) {
    std::string other;
    int last = first;
    for (int process = 1; process < kProcesses; ++process) {
      const auto next = worker::checks_until_failure(law_, kernel_, finding_.shrunk, most);
      if (next == first) continue;
      other = next ? fmt::format("at check {}", *next) : fmt::format("at none of {}", most);
      last = std::max(last, next.value_or(most));
    }
    if (other.empty()) return false;
    finding_.checks = std::min(kOdds * last, most);
    Case alone = finding_.shrunk;
    alone.threads = 1;
    const bool race =
        finding_.shrunk.threads > 1 && !worker::checks_until_failure(law_, kernel_, alone, most);
    finding_.message = fmt::format(
        "{}: fails at check {} of this case in one process and {} in another{}: {}",
        race ? "race" : "chance", first, other,
        race ? fmt::format(", with {} threads, and not with one", finding_.shrunk.threads) : "",
        finding_.message);
    return true;
  }

  // The case found. A law that sets the mask itself makes one row and one key of none: it then says
  // more with them.
  Case with_rows_and_keys() {
    const Problem& problem = finding_.found.problem;
    const bool none = problem.seqlen_q == 0 || problem.seqlen_k == 0;
    if (!none || law_.mask != proptest::MaskUse::replaced) return finding_.found;
    Case plain = finding_.found;
    plain.problem = proptest::plain_problem(problem);
    const LawResult tried = worker::check(law_, kernel_, plain);
    if (!alike(tried)) return finding_.found;
    finding_.message = tried.message;
    return plain;
  }

  bool alike(const LawResult& result) const {
    return result.verdict == finding_.verdict && worker::kind_in(result.message) == fault_;
  }

  const attest_kernel& kernel_;
  Finding& finding_;
  const Law& law_;
  std::optional<worker::FaultKind> fault_;
  const Interrupted& interrupted_;
};

}  // namespace

void shrink_finding(const attest_kernel& kernel, Finding& finding,
                    const std::vector<Case>& sequence, const Interrupted& interrupted) {
  Shrinker shrinker(kernel, finding, interrupted);
  shrinker.note_first_call();
  shrinker.shrink();
  shrinker.take_called_problem();
  if (interrupted() || shrinker.note_threads() || interrupted()) return;
  shrinker.note_state(sequence);
}

}  // namespace attest::certify
