#include "certify/campaign/campaign.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "certify/campaign/code_content.hpp"
#include "certify/findings/case_text.hpp"
#include "certify/findings/same_cause.hpp"
#include "certify/findings/told_findings.hpp"
#include "certify/plan/coverage.hpp"
#include "certify/plan/plan.hpp"
#include "certify/worker/process/isolated_kernel.hpp"
#include "core/rng.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::certify {
namespace {

using proptest::Case;
using proptest::Law;
using proptest::LawResult;

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

// A claim that no problem shows: a law that holds exercises it.
struct ClaimOfLaw {
  std::string_view law;
  std::uint32_t claim;
  const char* word;
};

constexpr std::array kExercisedByLaws{
    ClaimOfLaw{"layout_independence", ATTEST_LAYOUT_BITS, "layout_bits"},
    ClaimOfLaw{"loss_layout", ATTEST_LAYOUT_BITS, "layout_bits"},
    ClaimOfLaw{"batch_invariance", ATTEST_BATCH_INVARIANT, "batch_invariant"},
    ClaimOfLaw{"split_invariance", ATTEST_SPLIT_INVARIANT, "split_invariant"},
    ClaimOfLaw{"nan_propagation", ATTEST_NONFINITE, "nonfinite"}};

bool fails(Verdict verdict) { return verdict == Verdict::violated || verdict == Verdict::crashed; }

// Judges what the journal knows, in the order of the plan.
class Judge {
 public:
  Judge(const Run& run, const std::vector<const Law*>& laws)
      : run_(run), kernel_(run.kernel), laws_(laws) {
    result_.kernel = kernel_.description.name;
    for (const Law* law : laws) result_.laws[std::string(law->name)];
  }

  void judge(const std::vector<PlannedCase>& plan) {
    for (std::uint64_t position = 0; position < plan.size(); ++position) {
      bool met = run_.planned.count(position) > 0;
      for (const Law* law : laws_) {
        const std::string name(law->name);
        LawCount& count = result_.laws[name];
        if (ended_.count(law) > 0) continue;
        const auto record = run_.journal.check({result_.kernel, name, position});
        if (!record) {
          met = met && !planned(position, law);
          continue;
        }
        ++result_.checks;
        Case c = plan[position].c;
        c.seed = record->seed;
        note(*law, position, c, *record, count);
        note_own(plan[position], *law, *record);
      }
      if (met) ++result_.cases;
    }
  }

  CampaignResult take() {
    result_.verdict = Verdict::unsupported;
    // No case is drawn that would say so.
    if (kernel_.description.device == ATTEST_CUDA) {
      result_.not_claimed.try_emplace(proptest::kHugeOnDevice, 0);
    }
    for (const auto& [law, count] : result_.laws) {
      if (count.passed > 0) result_.verdict = graver(result_.verdict, Verdict::passed);
      if (count.vacuous > 0) result_.verdict = graver(result_.verdict, Verdict::vacuous);
    }
    if (flat(result_) && result_.verdict == Verdict::passed) result_.verdict = Verdict::vacuous;
    for (const Finding& finding : result_.findings) {
      result_.verdict = graver(result_.verdict, finding.verdict);
    }
    return std::move(result_);
  }

 private:
  bool planned(std::uint64_t position, const Law* law) const {
    const auto& laws = run_.planned.at(position);
    return std::find(laws.begin(), laws.end(), law) != laws.end();
  }

  void note(const Law& law, std::uint64_t position, const Case& c, const CheckRecord& record,
            LawCount& count) {
    for (const auto& [output, ratio] : record.outputs) {
      WorstRatio& worst = result_.worst[output];
      if (record.verdict == Verdict::passed) ++worst.histogram[ratio_bin(ratio)];
      if (ratio > worst.ratio) {
        worst.ratio = ratio;
        worst.problem = c.problem.to_string();
      }
    }
    switch (record.verdict) {
      case Verdict::passed:
        ++count.passed;
        note_exercised(law, c, record);
        return;
      case Verdict::vacuous:
        ++count.vacuous;
        return;
      case Verdict::improbable:
        ++count.improbable;
        return;
      case Verdict::unsupported:
        ++count.unsupported;
        note_coverage(law, c, record.message, count);
        return;
      case Verdict::violated:
      case Verdict::crashed:
        break;
    }
    ++count.failed;
    const auto fault = worker::kind_in(record.message);
    if (!fault) note_wrong(c, record, count);
    if (fault && worker::leaves_results(*fault)) {
      ++count.hidden;
    } else {
      note_failing(law, c, record);
    }
    if (ends_law(run_, record.verdict, record.message)) ended_.insert(&law);
    if (!failures_.insert({&law, fault}).second) return;
    // One fault is one finding, however many laws meet it.
    if (fault) {
      const auto [known, first] = faults_.emplace(*fault, result_.findings.size());
      if (!first) {
        result_.findings[known->second].also.emplace_back(law.name);
        return;
      }
    }
    result_.findings.push_back(
        {std::string(law.name), record.verdict, c, c, record.message, 1, position, {}, ""});
  }

  // Laws about equal bits say first which differ; the exact result of a probe is a value.
  static bool is_of_bits(const std::string& message) {
    const bool asks_for_bits = message.find(proptest::kExactly) != std::string::npos;
    return asks_for_bits &&
           output_of(message.substr(0, message.find('['))) != message.substr(0, message.find('['));
  }

  static void note_wrong(const Case& c, const CheckRecord& record, LawCount& count) {
    const WrongCheck check{c, record.message};
    std::set<std::string> outputs = refused_outputs({record.verdict, record.message, {}});
    const bool otherwise = outputs.empty() || is_of_bits(record.message);
    if (otherwise && !count.wrong_otherwise) count.wrong_otherwise = check;
    for (const auto& [output, ratio] : record.outputs) {
      if (ratio > 1) outputs.insert(output_of(output));
    }
    for (const std::string& output : outputs) count.wrong.try_emplace(output, check);
  }

  void note_failing(const Law& law, const Case& c, const CheckRecord& record) {
    for (const std::string& word : words_exercised(law, c, record)) result_.failing.insert(word);
    // A check that failed by a fault may have compared nothing.
    if (worker::kind_in(record.message)) result_.failing.insert({"lse", "dlse", "loss_dy"});
    if (reference_laws().count(std::string(law.name)) == 0) return;
    result_.failing_pairs.merge(pairs_of(c.problem, direction_of(law)));
  }

  static Direction direction_of(const Law& law) {
    return law.name == "reference_forward"    ? Direction::forward
           : law.name == "reference_backward" ? Direction::backward
                                              : Direction::loss_gradient;
  }

  std::vector<std::string> words_exercised(const Law& law, const Case& c,
                                           const CheckRecord& record) const {
    std::vector<std::string> words = exercised_by(c.problem, kernel_.description.features);
    const auto compared = [&](const char* output) { return record.outputs.count(output) > 0; };
    if (compared("LSE")) words.emplace_back("lse");
    if (compared("dY")) words.emplace_back("loss_dy");
    if (compared("dQ") && proptest::uses_dlse(kernel_.description, c.seed)) {
      words.emplace_back("dlse");
    }
    for (const ClaimOfLaw& of : kExercisedByLaws) {
      const bool claimed = (kernel_.description.features & of.claim) != 0;
      if (claimed && law.name == of.law) words.emplace_back(of.word);
    }
    return words;
  }

  void note_exercised(const Law& law, const Case& c, const CheckRecord& record) {
    const std::vector<std::string> words = words_exercised(law, c, record);
    auto& of_dtype = result_.matrix[words.front()];
    for (const std::string& word : words) {
      ++result_.exercised[word];
      ++of_dtype[word == words.front() ? "any" : word];
    }
    if (reference_laws().count(std::string(law.name)) == 0) return;
    result_.met.merge(pairs_of(c.problem, direction_of(law)));
    include(c.problem, result_.sizes);
  }

  // Notes why the reference has not judged a problem of one's own, as long as it has not.
  void note_own(const PlannedCase& planned, const Law& law, const CheckRecord& record) {
    if (!planned.own || reference_laws().count(std::string(law.name)) == 0) return;
    const std::string problem = planned.c.problem.to_string();
    if (record.verdict != Verdict::vacuous && record.verdict != Verdict::unsupported) {
      result_.unjudged.erase(problem);
      judged_.insert(problem);
    } else if (judged_.count(problem) == 0) {
      std::string& reason = result_.unjudged[problem];
      if (reason.empty() || is_of_direction(reason)) reason = record.message;
    }
  }

  // That a direction is not claimed is the reason where no law of another direction has one.
  static bool is_of_direction(const std::string& reason) {
    constexpr std::array kDirections{Direction::forward, Direction::backward,
                                     Direction::loss_gradient};
    return std::any_of(kDirections.begin(), kDirections.end(), [&](Direction direction) {
      return reason == "not claimed: " + std::string(words(direction));
    });
  }

  void note_coverage(const Law& law, const Case& c, const std::string& message, LawCount& count) {
    const std::string prefix = "not claimed: ";
    if (message.rfind(prefix, 0) == 0) {
      ++count.not_claimed;
      ++result_.not_claimed[message.substr(prefix.size())];
    } else if (message.rfind(proptest::kRefused, 0) == 0) {
      note_refusal(law, c, message);
    }
  }

  // A kernel may refuse a thousand cases for one reason.
  void note_refusal(const Law& law, const Case& c, const std::string& message) {
    const std::string_view refused = proptest::kRefused;
    const std::size_t says = message.find(proptest::kItSays);
    const std::string words = std::string(refused.substr(0, refused.find(':'))) +
                              (says == std::string::npos ? "" : message.substr(says));
    const auto known = std::find_if(result_.refused.begin(), result_.refused.end(),
                                    [&](const Refusal& one) { return one.message == words; });
    if (known != result_.refused.end()) {
      ++known->checks;
      return;
    }
    result_.refused.push_back({words, 1,
                               reproduce_line(result_.kernel, std::string(law.name), c, 1,
                                              worker::isolation_words(kernel_))});
  }

  const Run& run_;
  const attest_kernel& kernel_;
  const std::vector<const Law*>& laws_;
  std::set<const Law*> ended_;
  std::set<std::pair<const Law*, std::optional<worker::FaultKind>>> failures_;  // of each law
  std::map<worker::FaultKind, std::size_t> faults_;  // and the finding of each
  std::set<std::string> judged_;                     // own problems
  CampaignResult result_;
};

class Campaign {
 public:
  Campaign(const CampaignOptions& options, Run& run, const std::function<std::string()>& ended_by)
      : options_(options),
        run_(run),
        ended_by_(ended_by),
        laws_(laws_of(run.kernel.description, options)) {}

  CampaignResult carry_out() {
    plan_ = planned_cases(description(), options_);
    if (options_.mask) require_unchanged(*options_.mask);  // which the plan may have read again
    next_index_ = generated_count(options_);
    run_batches(run_, plan_, batches_of(plan_, 0, laws_));
    const bool chosen = options_.cases || options_.law || options_.mask;
    if (!chosen && options_.shard.whole()) close_gaps();
    CampaignResult result = judged();
    for (Finding& finding : result.findings) {
      finding.isolation = worker::isolation_words(run_.kernel);
    }
    result.findings = told_findings(run_, plan_, std::move(result.findings));
    for (const Finding& finding : result.findings) {
      result.verdict = graver(result.verdict, finding.verdict);
    }
    result.interrupted = run_.interrupted();
    if (result.interrupted && ended_by_) result.ended_by = ended_by_();
    result.loaded = worker::loaded_in_calls(run_.kernel);
    result.planned_checks = run_.total;
    result.planned_cases = run_.planned.size();
    result.gaps = gaps_of(description(), result);
    if (!result.findings.empty()) result.gaps_beside = gaps_beside_failures(description(), result);
    return result;
  }

 private:
  const attest_description& description() const { return run_.kernel.description; }

  CampaignResult judged() const {
    Judge judge(run_, laws_);
    judge.judge(plan_);
    CampaignResult result = judge.take();
    result.chosen_law = options_.law;
    result.shapes = options_.shapes;
    result.shard = options_.shard;
    if (options_.mask) {
      result.mask = options_.mask->spelling;
      result.mask_content = options_.mask->content;
    }
    if (!options_.law && !options_.mask) result.claimed = claimed_pairs(description());
    return result;
  }

  // Cases for what no case has met, a few at a time: those that exercise a missing claim run every
  // law, those for missing pairs the reference, others the laws that have counted nowhere.
  void close_gaps() {
    constexpr int kRounds = 15;
    for (int round = 0; round < kRounds && !run_.interrupted(); ++round) {
      const CampaignResult result = counting_failures(judged());
      if (!all_expected(result.findings)) return;
      const std::uint64_t first = plan_.size();
      add_cases(result, static_cast<std::uint64_t>(round));
      if (plan_.size() == first) return;
      run_batches(run_, plan_, batches_of(plan_, first, laws_));
    }
  }

  bool all_expected(const std::vector<Finding>& findings) const {
    return std::all_of(findings.begin(), findings.end(), [&](const Finding& finding) {
      return run_.expected.count(worker::kind_in(finding.message)) > 0;
    });
  }

  void add_cases(const CampaignResult& result, std::uint64_t round) {
    constexpr std::uint64_t kDraws = 200, kCases = 4, kStream = 0x67617073u;
    const std::vector<std::string> missing = unexercised(description(), result);
    const std::vector<std::string> silent = silent_laws(result);
    const std::uint64_t first = plan_.size(), last = next_index_ + kDraws;
    while ((!missing.empty() || !silent.empty()) && next_index_ < last &&
           plan_.size() < first + kCases) {
      const Case c = generated_case(description(), options_, next_index_++);
      const std::vector<std::string> words = could_exercise(c);
      const bool exercises = std::any_of(missing.begin(), missing.end(), [&](const auto& word) {
        return std::find(words.begin(), words.end(), word) != words.end();
      });
      if (exercises) {
        plan_.push_back({c, {}});
      } else if (!silent.empty()) {
        plan_.push_back({c, std::set(silent.begin(), silent.end())});
      }
    }
    const std::uint64_t stream = mix(kStream, round);
    for (Case& c : cases_meeting(description(), unmet_pairs(result), mix(options_.seed, stream))) {
      c.seed = mix(mix(options_.values_seed(), stream), plan_.size());
      plan_.push_back({c, reference_laws()});
    }
  }

  std::vector<std::string> could_exercise(const Case& c) const {
    std::vector<std::string> words = exercised_by(c.problem, description().features);
    words.emplace_back("lse");
    words.emplace_back("loss_dy");
    for (const ClaimOfLaw& claim : kExercisedByLaws) words.emplace_back(claim.word);
    if (proptest::uses_dlse(description(), c.seed)) words.emplace_back("dlse");
    return words;
  }

  const CampaignOptions& options_;
  Run& run_;
  const std::function<std::string()>& ended_by_;
  std::vector<const Law*> laws_;
  std::vector<PlannedCase> plan_;
  std::uint64_t next_index_ = 0;
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

CampaignResult run_campaign(const attest_kernel& kernel, const CampaignOptions& options,
                            const Progress& progress, const Surveillance& surveillance) {
  const auto begin = std::chrono::steady_clock::now();
  Journal own;
  Run run{
      kernel,        options.jobs,
      options.shard, surveillance.journal == nullptr ? own : *surveillance.journal,
      progress,      surveillance.interrupted ? surveillance.interrupted : [] { return false; }};
  run.first = surveillance.first;
  run.failed = surveillance.failed;
  run.expected = surveillance.expected;
  const std::string content = content_of_code(kernel);
  CampaignResult result = Campaign(options, run, surveillance.ended_by).carry_out();
  worker::require_same_file(kernel);
  result.library = content;
  result.needed = needed_content(kernel);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

void attach(CampaignResult& result, std::optional<ScheduleAudit> io,
            std::optional<ScheduleAudit> io_backward) {
  for (const std::optional<ScheduleAudit>& each : {io, io_backward}) {
    if (!each) continue;
    if (!each->violations.empty()) result.verdict = graver(result.verdict, Verdict::violated);
    for (const std::string& reason : each->not_counted) {
      result.gaps.push_back("schedule " + each->schedule + " is not counted: " + reason);
    }
  }
  result.io = std::move(io);
  result.io_backward = std::move(io_backward);
}

std::string reproduce_line(const std::string& kernel, const std::string& law, const Case& c,
                           int checks, const std::string& isolation) {
  return "attest check --kernel " + shell_word(kernel) + " --problem '" + c.problem.to_string() +
         "' --values " + std::string(proptest::name(c.values)) + " --law " + law + " --seed " +
         std::to_string(c.seed) + " --threads " + std::to_string(c.threads) +
         (checks > 1 ? " --repeat " + std::to_string(checks) : "") + isolation;
}

std::string reproduce_line(const std::string& kernel, const Finding& finding) {
  std::string line = reproduce_line(kernel, finding.law, finding.shrunk, finding.checks);
  for (const Case& earlier : finding.after) {
    line += " --after '" + case_text(earlier, finding.shrunk) + "'";
  }
  return line + finding.isolation;
}

}  // namespace attest::certify
