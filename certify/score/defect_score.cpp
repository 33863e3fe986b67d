#include "certify/score/defect_score.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>

#include "certify/certificate.hpp"
#include "certify/findings/shrunk_finding.hpp"
#include "certify/plan/plan.hpp"
#include "certify/score/published_rules.hpp"
#include "proptest/judge/truth/sample.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

struct Check {
  std::uint64_t position;  // in the plan
  const proptest::Law* law;
};

// The checks of a plan in the order that refuses a kernel for the least time: the reference on
// every case that is judged whole, then the laws that call the kernel often, then long problems.
std::vector<Check> cheapest_first(const attest_description& description,
                                  const std::vector<PlannedCase>& plan) {
  std::array<std::vector<Check>, 3> rounds;
  for (std::uint64_t position = 0; position < plan.size(); ++position) {
    const std::set<std::string>& only = plan[position].only;
    const bool long_one = proptest::judged_by_sample(plan[position].c.problem);
    for (const proptest::Law& law : proptest::laws()) {
      const std::string name(law.name);
      if (!proptest::concerns(law, description)) continue;
      if (!only.empty() && only.count(name) == 0) continue;
      const std::size_t round = long_one ? 2 : reference_laws().count(name) > 0 ? 0 : 1;
      rounds[round].push_back({position, &law});
    }
  }
  std::vector<Check> checks;
  for (const auto& round : rounds) checks.insert(checks.end(), round.begin(), round.end());
  return checks;
}

// The first check that refuses the kernel, and the number of cases until then.
std::optional<Finding> first_finding(const attest_kernel& kernel, const CampaignOptions& options,
                                     const Interrupted& interrupted, DefectScore& score) {
  const std::vector<PlannedCase> plan = small_planned_cases(kernel.description, options);
  score.planned_cases = plan.size();
  std::set<std::uint64_t> met;
  for (const auto [position, law] : cheapest_first(kernel.description, plan)) {
    if (interrupted()) break;
    met.insert(position);
    score.cases = met.size();
    proptest::Case c = plan[position].c;
    const proptest::LawResult result = check_repeating(*law, kernel, c);
    if (result.verdict != Verdict::violated && result.verdict != Verdict::crashed) continue;
    Finding finding;
    finding.law = law->name;
    finding.verdict = result.verdict;
    finding.found = finding.shrunk = c;
    finding.message = result.message;
    finding.position = position;
    return finding;
  }
  return std::nullopt;
}

json defect_json(const DefectScore& score) {
  json object{{"kernel", score.kernel},
              {"smallest_documented", score.smallest},
              {"cases", score.cases},
              {"planned_cases", score.planned_cases},
              {"interrupted", score.interrupted},
              {"accepted_by", score.accepted},
              {"caught", score.caught.has_value()}};
  if (score.caught) {
    object["law"] = score.caught->law;
    object["message"] = score.caught->message;
    object["shrunk"] = case_json(score.caught->shrunk);
    object["shrunk_to_four_keys"] = score.shrunk_to_few();
    object["shrunk_to_documented"] = score.shrunk_to_smallest();
    object["reproduce"] =
        reproduce_line(score.kernel, score.caught->law, score.caught->shrunk, score.caught->checks);
  }
  return object;
}

}  // namespace

bool DefectScore::shrunk_to_few() const {
  constexpr std::int64_t kFew = 4;
  if (!caught) return false;
  const Problem& problem = caught->shrunk.problem;
  return problem.seqlen_q <= kFew && problem.seqlen_k <= kFew;
}

bool DefectScore::shrunk_to_smallest() const {
  if (!caught) return false;
  const Problem &found = caught->shrunk.problem, documented = Problem::parse(smallest);
  constexpr std::array kSizes{&Problem::batch,     &Problem::num_heads_q, &Problem::num_heads_kv,
                              &Problem::seqlen_q,  &Problem::seqlen_k,    &Problem::head_dim_qk,
                              &Problem::head_dim_v};
  return std::all_of(kSizes.begin(), kSizes.end(),
                     [&](const auto size) { return found.*size <= documented.*size; });
}

DefectScore score_defect(const fixtures::CorpusEntry& entry, const PlainKernels& plain,
                         const CampaignOptions& options, const Interrupted& interrupted) {
  const auto begin = std::chrono::steady_clock::now();
  const attest_kernel& kernel = *entry.kernel;
  DefectScore score;
  score.kernel = kernel.description.name;
  score.smallest = entry.smallest;
  score.caught = first_finding(kernel, options, interrupted, score);
  score.interrupted = !score.caught && interrupted();
  if (score.interrupted) return score;
  if (score.caught) shrink_finding(kernel, *score.caught, {}, interrupted);
  const bool loss = (kernel.description.directions & ATTEST_LOSS_GRADIENT) != 0;
  score.accepted = accepting_rules(kernel, loss ? plain.loss : plain.attention);
  score.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return score;
}

json score_json(const std::vector<DefectScore>& scores, const CampaignOptions& options) {
  json defects = json::array(), rules = json::object(), laws = json::object();
  json seconds = json::object();
  std::size_t caught = 0, few = 0, documented = 0, either = 0;
  for (const PublishedRule& rule : published_rules()) {
    rules[rule.name] = {{"source", rule.source}, {"accepts", 0}};
  }
  for (const DefectScore& score : scores) {
    defects.push_back(defect_json(score));
    seconds[score.kernel] = score.seconds;
    caught += score.caught ? 1 : 0;
    few += score.shrunk_to_few() ? 1 : 0;
    documented += score.shrunk_to_smallest() ? 1 : 0;
    either += score.shrunk_to_few() || score.shrunk_to_smallest() ? 1 : 0;
    for (const std::string& rule : score.accepted) {
      rules[rule]["accepts"] = rules[rule]["accepts"].get<int>() + 1;
    }
    if (score.caught) laws[score.caught->law] = laws.value(score.caught->law, 0) + 1;
  }
  return {{"schema", "attest-defects-1"},
          {"tier", proptest::name(options.tier)},
          {"seed", options.seed},
          {"data_seed", options.values_seed()},
          {"caught", caught},
          {"all", scores.size()},
          {"shrunk_to_four_keys", few},
          {"shrunk_to_documented", documented},
          {"shrunk_to_either", either},
          {"laws", laws},
          {"published_rules", rules},
          {"defects", defects},
          {"timings", {{"seconds", seconds}}}};
}

}  // namespace attest::certify
