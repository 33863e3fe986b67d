// Verdict of a campaign's counts: its gaps, its outcome, its exit code.
#include <algorithm>
#include <iterator>
#include <numeric>

#include "certify/campaign/campaign.hpp"
#include "certify/plan/coverage.hpp"
#include "certify/plan/plan.hpp"

namespace attest::certify {
namespace {

// A part of the checks proves little by itself, perhaps nothing.
bool nothing_found_in_shard(const CampaignResult& result) {
  return !result.shard.whole() && result.findings.empty();
}

// Tells whether what crashed is all listed as known.
bool crashes_as_known(const CampaignResult& result) {
  const auto crashed = [&](bool known) {
    return std::any_of(result.findings.begin(), result.findings.end(), [&](const Finding& finding) {
      return finding.verdict == Verdict::crashed && finding.known == known;
    });
  };
  return crashed(true) && !crashed(false);
}

}  // namespace

bool flat(const CampaignResult& result) {
  return std::any_of(result.laws.begin(), result.laws.end(), [](const auto& entry) {
    const auto& [law, count] = entry;
    return law.rfind("reference_", 0) == 0 && count.vacuous > count.passed;
  });
}

std::vector<std::string> silent_laws(const CampaignResult& result) {
  std::vector<std::string> silent;
  for (const auto& [law, count] : result.laws) {
    const bool beyond_the_claims =
        count.not_claimed > 0 && count.not_claimed == count.unsupported && count.vacuous == 0;
    if (count.passed == 0 && count.failed == 0 && !beyond_the_claims) silent.push_back(law);
  }
  return silent;
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

Pairs unmet_pairs(const CampaignResult& result) {
  Pairs unmet;
  std::set_difference(result.claimed.begin(), result.claimed.end(), result.met.begin(),
                      result.met.end(), std::inserter(unmet, unmet.end()));
  return unmet;
}

std::vector<std::string> not_judged(const CampaignResult& result) {
  std::vector<std::string> gaps;
  if (!result.refused.empty()) {
    const std::uint64_t checks =
        std::accumulate(result.refused.begin(), result.refused.end(), std::uint64_t{0},
                        [](std::uint64_t sum, const Refusal& one) { return sum + one.checks; });
    gaps.push_back("refused in " + std::to_string(checks) +
                   " checks what it claims, first: " + result.refused.front().example);
  }
  for (const auto& [problem, reason] : result.unjudged) {
    gaps.push_back("the problem " + problem + " was not judged: " + reason);
  }
  return gaps;
}

std::vector<std::string> gaps_of(const attest_description& description,
                                 const CampaignResult& result) {
  std::vector<std::string> gaps;
  if (result.interrupted) {
    gaps.push_back(result.ended_by + " after " + std::to_string(result.checks) + " of " +
                   std::to_string(result.planned_checks) + " checks");
  }
  for (const std::string& gap : not_judged(result)) gaps.push_back(gap);
  if (result.chosen_law || !result.shard.whole()) return gaps;
  if (result.mask) {
    bool judged = false;
    for (const auto& [law, count] : result.laws) {
      judged = judged || (reference_laws().count(law) > 0 && count.passed > 0);
    }
    for (const std::string& law : silent_laws(result)) {
      if (reference_laws().count(law) == 0) continue;
      gaps.push_back("no case with the mask counted for the law " + law);
    }
    if (!judged && gaps.empty()) gaps.emplace_back("no case with the mask met the reference");
    return gaps;
  }
  for (const std::string& word : unexercised(description, result)) {
    gaps.push_back("claimed, never exercised: " + word);
  }
  for (const std::string& law : silent_laws(result)) {
    gaps.push_back("no case counted for the law " + law);
  }
  if (result.shapes == Shapes::none) {
    gaps.emplace_back("without the shapes of published models (--shapes none)");
  }
  const Pairs unmet = unmet_pairs(result);
  if (!unmet.empty()) {
    gaps.push_back("never met together in " + std::to_string(unmet.size()) + " of " +
                   std::to_string(result.claimed.size()) +
                   " claimed pairs, first: " + *unmet.begin());
  }
  return gaps;
}

CampaignResult counting_failures(CampaignResult result) {
  for (const std::string& word : result.failing) ++result.exercised[word];
  result.met.insert(result.failing_pairs.begin(), result.failing_pairs.end());
  for (auto& [law, count] : result.laws) {
    count.passed += count.failed - count.hidden;
    count.failed = 0;
  }
  return result;
}

std::vector<std::string> gaps_beside_failures(const attest_description& description,
                                              const CampaignResult& result) {
  const CampaignResult counted = counting_failures(result);
  std::vector<std::string> gaps = gaps_of(description, counted);
  if (!result.chosen_law || !result.shard.whole()) return gaps;
  for (const std::string& law : silent_laws(counted)) {
    gaps.push_back("no case counted for the law " + law);
  }
  return gaps;
}

std::string_view outcome(const CampaignResult& result) {
  if (nothing_found_in_shard(result)) return result.gaps.empty() ? "shard_passed" : "incomplete";
  if (result.verdict != Verdict::passed) return name(result.verdict);
  if (!result.gaps.empty()) return "incomplete";
  if (result.chosen_law) return "law_holds";
  return result.mask ? "mask_holds" : "certified";
}

bool fails_as_known(const CampaignResult& result) {
  const auto holds = [](const std::optional<ScheduleAudit>& io) {
    return !io || io->violations.empty();
  };
  return !result.findings.empty() && holds(result.io) && holds(result.io_backward) &&
         std::all_of(result.findings.begin(), result.findings.end(),
                     [](const Finding& finding) { return finding.known || finding.undecided; });
}

int exit_code(const std::vector<CampaignResult>& results) {
  constexpr int kViolated = 1, kNothingProven = 3, kCrashed = 4;
  int code = 0;
  for (const CampaignResult& result : results) {
    if (fails_as_known(result)) {
      const bool undecided = std::any_of(result.findings.begin(), result.findings.end(),
                                         [](const Finding& finding) { return finding.undecided; });
      const bool whole = !result.interrupted && !undecided && result.gaps_beside.empty() &&
                         not_judged(result).empty();
      if (!whole && code == 0) code = kNothingProven;
      continue;
    }
    if (result.verdict == Verdict::crashed) {
      if (!crashes_as_known(result)) return kCrashed;
      code = kViolated;
    }
    if (result.verdict == Verdict::violated) code = kViolated;
    const bool proven = (result.verdict == Verdict::passed || nothing_found_in_shard(result)) &&
                        result.gaps.empty();
    if (!proven && code == 0) {
      code = kNothingProven;
    }
  }
  return code;
}

}  // namespace attest::certify
