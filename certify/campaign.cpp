#include "certify/campaign.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <set>

#include "certify/coverage.hpp"
#include "certify/worker/isolated_kernel.hpp"
#include "core/dtype.hpp"
#include "core/rng.hpp"
#include "fixtures/models.hpp"
#include "proptest/loss.hpp"

namespace attest::certify {
namespace {

using proptest::Case;
using proptest::Law;
using proptest::LawResult;

std::uint64_t cases_of(proptest::Tier tier) {
  switch (tier) {
    case proptest::Tier::smoke:
      return 40;
    case proptest::Tier::fast:
      return 150;
    case proptest::Tier::full:
      break;
  }
  return 2000;
}

// Laws that counted on no case although the kernel claims what they need.
std::vector<std::string> silent_laws(const CampaignResult& result) {
  std::vector<std::string> silent;
  for (const auto& [law, count] : result.laws) {
    const bool beyond_the_claims =
        count.not_claimed > 0 && count.not_claimed == count.unsupported && count.vacuous == 0;
    if (count.passed == 0 && count.failed == 0 && !beyond_the_claims) silent.push_back(law);
  }
  return silent;
}

// A word as a shell reads it: quoted where it has more than letters, digits and a few signs.
std::string shell_word(const std::string& word) {
  const bool plain = std::all_of(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-./:+=@%").find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

bool fails(Verdict verdict) { return verdict == Verdict::violated || verdict == Verdict::crashed; }

// Shapes of published models, as attention problems and as loss gradients of their size.
std::vector<Case> model_cases(const attest_description& description, std::uint64_t seed) {
  constexpr std::int32_t kThreads = 2;
  std::vector<Case> cases;
  const auto add = [&](const Problem& problem) {
    cases.push_back({problem, proptest::Values::normal, mix(seed, cases.size()), kThreads});
  };
  if ((description.directions & (ATTEST_FORWARD | ATTEST_BACKWARD)) != 0) {
    for (const fixtures::Model& model : fixtures::models()) add(model.laptop);
  }
  if ((description.directions & ATTEST_LOSS_GRADIENT) != 0) {
    const bool single = (description.dtypes & (1u << ATTEST_F32)) != 0;
    for (const fixtures::Model& model : fixtures::models()) {
      add(proptest::loss_problem_like(model.laptop, single ? DType::f32 : model.laptop.dtype));
    }
  }
  return cases;
}

class Runner {
 public:
  Runner(const attest_kernel& kernel, const CampaignOptions& options) : kernel_(kernel) {
    for (const Law& law : proptest::laws()) {
      const bool chosen =
          options.law ? *options.law == law.name : proptest::concerns(law, kernel.description);
      if (chosen) laws_.push_back(&law);
    }
    result_.kernel = kernel.description.name;
    result_.chosen_law = options.law;
  }

  void run(const Case& c, const std::set<std::string>& only) {
    ++result_.cases;
    for (const Law* law : laws_) {
      const std::string name(law->name);
      LawCount& count = result_.laws[name];
      if (count.failed > 0 || (!only.empty() && only.count(name) == 0)) continue;
      record(*law, c, count);
    }
  }

  // Cases for what no case has met: those that exercise a missing claim run every law, others the
  // laws that have counted nowhere.
  void close_gaps(const CampaignOptions& options, std::uint64_t first) {
    constexpr std::uint64_t kDraws = 1000;
    constexpr int kMostCases = 60;
    int run_cases = 0;
    for (std::uint64_t index = first; index < first + kDraws && run_cases < kMostCases; ++index) {
      const std::vector<std::string> missing = unexercised(kernel_.description, result_);
      const std::vector<std::string> silent = silent_laws(result_);
      if ((missing.empty() && silent.empty()) || !result_.findings.empty()) return;
      const Case c = proptest::generate(kernel_.description, options.tier, options.seed, index);
      const std::vector<std::string> words = could_exercise(c);
      const bool exercises = std::any_of(missing.begin(), missing.end(), [&](const auto& word) {
        return std::find(words.begin(), words.end(), word) != words.end();
      });
      if (!exercises && silent.empty()) continue;
      run(c, exercises ? std::set<std::string>() : std::set(silent.begin(), silent.end()));
      ++run_cases;
    }
  }

  CampaignResult take() {
    result_.verdict = Verdict::unsupported;
    for (const auto& [law, count] : result_.laws) {
      if (count.passed > 0) result_.verdict = graver(result_.verdict, Verdict::passed);
      if (count.vacuous > 0) result_.verdict = graver(result_.verdict, Verdict::vacuous);
    }
    for (const Finding& finding : result_.findings) {
      result_.verdict = graver(result_.verdict, finding.verdict);
    }
    result_.gaps = gaps_of(kernel_.description, result_);
    return std::move(result_);
  }

 private:
  void record(const Law& law, const Case& c, LawCount& count) {
    Case tried = c;
    const LawResult result = check_repeating(law, kernel_, tried);
    for (const proptest::Comparison& comparison : result.comparisons) {
      WorstRatio& worst = result_.worst[comparison.output];
      if (result.verdict == Verdict::passed && comparison.ratio > worst.ratio) {
        worst = {comparison.ratio, tried.problem.to_string()};
      }
    }
    switch (result.verdict) {
      case Verdict::passed:
        ++count.passed;
        note_exercised(tried, result);
        return;
      case Verdict::vacuous:
        ++count.vacuous;
        return;
      case Verdict::improbable:
        ++count.improbable;
        return;
      case Verdict::unsupported:
        ++count.unsupported;
        note_coverage(result.message, count);
        return;
      case Verdict::violated:
      case Verdict::crashed:
        break;
    }
    ++count.failed;
    add_finding(law, tried, result);
  }

  void note_exercised(const Case& c, const LawResult& result) {
    for (const std::string& word : exercised_by(c.problem)) ++result_.exercised[word];
    const auto compared = [&](std::string_view output) {
      return std::any_of(result.comparisons.begin(), result.comparisons.end(),
                         [&](const proptest::Comparison& one) { return one.output == output; });
    };
    if (compared("LSE")) ++result_.exercised["lse"];
    if (compared("dY")) ++result_.exercised["loss_dy"];
    if (compared("dQ") && proptest::uses_dlse(kernel_.description, c.seed)) {
      ++result_.exercised["dlse"];
    }
  }

  std::vector<std::string> could_exercise(const Case& c) const {
    std::vector<std::string> words = exercised_by(c.problem);
    words.emplace_back("lse");
    words.emplace_back("loss_dy");
    if (proptest::uses_dlse(kernel_.description, c.seed)) words.emplace_back("dlse");
    return words;
  }

  void note_coverage(const std::string& message, LawCount& count) {
    const std::string prefix = "not claimed: ";
    if (message.rfind(prefix, 0) == 0) {
      ++count.not_claimed;
      ++result_.not_claimed[message.substr(prefix.size())];
    } else if (message.rfind("refused", 0) == 0) {
      result_.refused.push_back(message);
    }
  }

  void add_finding(const Law& law, const Case& c, const LawResult& result) {
    Finding finding{std::string(law.name), result.verdict, c, c, result.message};
    const auto fault = worker::kind_in(result.message);
    const bool known = fault && !faults_.insert(*fault).second;
    if (known) return;  // one fault is one finding, however many laws meet it
    const bool slow = fault == worker::FaultKind::hang;
    constexpr int kBudget = 200, kSlowBudget = 12;
    finding.shrunk = proptest::shrink(
        c,
        [&](const Case& smaller) {
          const LawResult tried = worker::check(law, kernel_, smaller);
          if (tried.verdict != result.verdict || worker::kind_in(tried.message) != fault) {
            return false;
          }
          finding.message = tried.message;
          return true;
        },
        slow ? kSlowBudget : kBudget);
    note_state(law, finding);
    result_.findings.push_back(finding);
  }

  // A case that fails only after others says so, for its line alone would not reproduce it.
  void note_state(const Law& law, Finding& finding) const {
    constexpr int kMostChecks = 64;
    const auto checks = worker::checks_until_failure(law, kernel_, finding.shrunk, kMostChecks);
    if (checks == 1) return;
    finding.checks = checks.value_or(1);
    finding.message =
        checks
            ? "state: check " + std::to_string(*checks) +
                  " of this case in one process fails, those before it do not: " + finding.message
            : "state: fails in this campaign, but not in a process of its own: " + finding.message;
  }

  const attest_kernel& kernel_;
  std::vector<const Law*> laws_;
  std::set<worker::FaultKind> faults_;
  CampaignResult result_;
};

}  // namespace

std::uint64_t CampaignResult::passed() const {
  std::uint64_t sum = 0;
  for (const auto& [law, count] : laws) sum += count.passed;
  return sum;
}

std::uint64_t CampaignResult::vacuous() const {
  std::uint64_t sum = 0;
  for (const auto& [law, count] : laws) sum += count.vacuous;
  return sum;
}

LawResult check_repeating(const Law& law, const attest_kernel& kernel, Case& c) {
  LawResult result = worker::check(law, kernel, c);
  if (result.verdict != Verdict::improbable) return result;
  Case again = c;
  again.seed = mix(c.seed, 1);
  LawResult second = worker::check(law, kernel, again);
  if (second.verdict == Verdict::improbable) {
    second.message = "improbable twice: " + second.message;
    second.verdict = Verdict::violated;
  } else if (!fails(second.verdict)) {
    return result;
  }
  c = again;
  return second;
}

std::vector<std::string> unexercised(const attest_description& description,
                                     const CampaignResult& result) {
  std::vector<std::string> words = words_of(description.dtypes, dtype_words());
  const std::vector<std::string> features = words_of(description.features, feature_words());
  words.insert(words.end(), features.begin(), features.end());
  words.erase(std::remove_if(words.begin(), words.end(),
                             [&](const auto& word) { return result.exercised.count(word) > 0; }),
              words.end());
  return words;
}

std::vector<std::string> gaps_of(const attest_description& description,
                                 const CampaignResult& result) {
  std::vector<std::string> gaps;
  if (!result.refused.empty()) {
    gaps.push_back("refused in " + std::to_string(result.refused.size()) +
                   " checks what it claims, first: " + result.refused.front());
  }
  if (result.chosen_law) return gaps;
  for (const std::string& word : unexercised(description, result)) {
    gaps.push_back("claimed, never exercised: " + word);
  }
  for (const std::string& law : silent_laws(result)) {
    gaps.push_back("no case counted for the law " + law);
  }
  return gaps;
}

std::string_view outcome(const CampaignResult& result) {
  if (result.verdict != Verdict::passed) return name(result.verdict);
  if (!result.gaps.empty()) return "incomplete";
  return result.chosen_law ? "law_holds" : "certified";
}

CampaignResult run_campaign(const attest_kernel& kernel, const CampaignOptions& options,
                            const Progress& progress) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Case> models = model_cases(kernel.description, options.seed);
  const std::uint64_t generated = options.cases.value_or(cases_of(options.tier));
  const std::uint64_t total = generated + models.size();
  std::uint64_t done = 0;
  Runner runner(kernel, options);
  // Model shapes are large: they meet the reference, the generated cases every law.
  for (const Case& c : models) {
    runner.run(c, {"reference_forward", "reference_backward", "reference_loss"});
    progress(++done, total);
  }
  for (std::uint64_t index = 0; index < generated; ++index) {
    runner.run(proptest::generate(kernel.description, options.tier, options.seed, index), {});
    progress(++done, total);
  }
  if (!options.cases && !options.law) runner.close_gaps(options, generated);
  CampaignResult result = runner.take();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

void attach(CampaignResult& result, std::optional<ScheduleAudit> io) {
  if (io) {
    if (!io->violations.empty()) result.verdict = graver(result.verdict, Verdict::violated);
    for (const std::string& reason : io->not_counted) {
      result.gaps.push_back("its schedule is not counted: " + reason);
    }
  }
  result.io = std::move(io);
}

int exit_code(const std::vector<CampaignResult>& results) {
  constexpr int kViolated = 1, kNothingProven = 3, kCrashed = 4;
  int code = 0;
  for (const CampaignResult& result : results) {
    if (result.verdict == Verdict::crashed) return kCrashed;
    if (result.verdict == Verdict::violated) code = kViolated;
    const bool proven = result.verdict == Verdict::passed && result.gaps.empty();
    if (!proven && result.verdict != Verdict::violated && code == 0) {
      code = kNothingProven;
    }
  }
  return code;
}

std::string reproduce_line(const std::string& kernel, const std::string& law, const Case& c,
                           int checks) {
  return "attest check --kernel " + shell_word(kernel) + " --problem '" + c.problem.to_string() +
         "' --values " + std::string(proptest::name(c.values)) + " --law " + law + " --seed " +
         std::to_string(c.seed) + " --threads " + std::to_string(c.threads) +
         (checks > 1 ? " --repeat " + std::to_string(checks) : "");
}

}  // namespace attest::certify
