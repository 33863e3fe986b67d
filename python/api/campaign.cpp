#include "python/api/campaign.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "certify/audit/seal.hpp"
#include "certify/campaign/campaign.hpp"
#include "certify/campaign/journal.hpp"
#include "certify/campaign/merge.hpp"
#include "certify/campaign/tier.hpp"
#include "certify/certificate.hpp"
#include "certify/findings/case_text.hpp"
#include "certify/findings/state_finding.hpp"
#include "certify/findings/told_findings.hpp"
#include "certify/plan/own_problems.hpp"
#include "certify/plan/plan.hpp"
#include "certify/worker/process/isolated_kernel.hpp"
#include "core/error.hpp"
#include "core/registry.hpp"
#include "proptest/judge/truth/affordable.hpp"
#include "python/api/contract.hpp"
#include "python/api/options.hpp"

namespace attest::python {
namespace {

using certify::CampaignOptions;
using certify::CampaignResult;
using nlohmann::json;

// A kernel that has its process to itself is watched for these.
const std::vector<std::string> kNotSeen{
    "a crash, a hang or an exit of a call, which end this process",
    "accesses outside tensors that reach neither their gaps nor their guards",
    "changes of the process: environment, locale, working directory, descriptors, signals",
    "memory that calls keep, and results kept from one process to the next"};

std::string text_of(const json& object) {
  return object.dump(2, ' ', false, json::error_handler_t::replace);
}

CampaignOptions parse_options(std::string_view line) {
  CampaignOptions options;
  options.jobs = std::max(1U, std::thread::hardware_concurrency());
  constexpr std::uint64_t kMostCases = 1000000000, kMostJobs = 1024;
  read_options(
      line,
      {{"tier", [&](auto& text) { options.tier = certify::parse_tier(text); }},
       {"seed", [&](auto& text) { options.seed = whole_number("seed", text, 0); }},
       {"data_seed", [&](auto& text) { options.data_seed = whole_number("data_seed", text, 0); }},
       {"cases", [&](auto& text) { options.cases = whole_number("cases", text, 0, kMostCases); }},
       {"shapes", [&](auto& text) { options.shapes = certify::parse_shapes(text); }},
       {"jobs",
        [&](auto& text) {
          options.jobs = static_cast<unsigned>(whole_number("jobs", text, 1, kMostJobs));
        }},
       {"shard", [&](auto& text) { options.shard = certify::parse_shard(text); }},
       {"only", [&](auto& text) { options.law = proptest::find_law(text).name; }},
       {"problem", [&](auto& text) { options.problems.push_back(text); }}},
      "tier=fast seed=7");
  options.problems = certify::own_problems(options.problems, "");
  if (options.law && !options.problems.empty() &&
      certify::reference_laws().count(*options.law) == 0) {
    throw InvalidProblem("only=" + *options.law +
                         ": problems of your own meet the laws of the reference alone");
  }
  return options;
}

// Asks one thread at a time, until it is told to end.
class Asker {
 public:
  explicit Asker(const Caller& caller) : caller_(caller) {}

  void tell(std::uint64_t done, std::uint64_t total) {
    done_ = done;
    total_ = total;
    ended();
  }

  bool ended() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!ended_ && caller_.progress != nullptr) {
      ended_ = caller_.progress(caller_.self, done_, total_) != 0;
    }
    return ended_;
  }

 private:
  const Caller caller_;
  std::mutex mutex_;
  bool ended_ = false;
  std::atomic<std::uint64_t> done_{0}, total_{0};
};

attest_outcome outcome_of(const CampaignResult& result) {
  constexpr int kProved = 0, kNothingProved = 3;
  const int code = certify::exit_code({result});
  if (code == kProved) return ATTEST_PASSED;
  return code == kNothingProved ? ATTEST_NOTHING_PROVED : ATTEST_REFUSED;
}

// Runs what the journal does not have yet of the campaign.
Judgement run(const attest_kernel& kernel, const CampaignOptions& options, const Caller& caller,
              certify::Journal& journal) {
  Registry registry;
  registry.add(&kernel);
  certify::require_affordable_problems(kernel, options.problems);
  certify::certificate_date();  // refuses a bad one before the work, not after it
  Asker asker(caller);
  const CampaignResult result = certify::run_campaign(
      kernel, options, [&](std::uint64_t done, std::uint64_t total) { asker.tell(done, total); },
      {[&] { return asker.ended(); }, &journal});
  json object = certify::certificate(registry, options, {result}, &journal);
  if (!certify::worker::is_isolated(kernel)) object["kernels"][0]["not_seen"] = kNotSeen;
  certify::seal(object);
  return {outcome_of(result), text_of(object)};
}

// A check, and what must be checked before it in the same process.
struct Replay {
  proptest::Case c;
  int most = 1;
  std::vector<proptest::Case> after{};
};

Replay parse_replay(const std::string& text) {
  constexpr std::uint64_t kMostChecks = 1000000;
  const std::string repeat = "repeat=", after = "after=";
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  Replay replay{certify::parse_case_text(line, {})};
  while (std::getline(lines, line)) {
    if (line.rfind(repeat, 0) == 0) {
      replay.most =
          static_cast<int>(whole_number("repeat", line.substr(repeat.size()), 1, kMostChecks));
    } else if (line.rfind(after, 0) == 0) {
      replay.after.push_back(certify::parse_case_text(line.substr(after.size()), replay.c));
    } else {
      throw InvalidProblem("'" + line + "' is neither repeat=N nor after=CASE");
    }
  }
  return replay;
}

}  // namespace

Judgement certify(const attest_kernel& kernel, const char* contract, std::string_view options,
                  const Caller& caller) {
  const CampaignOptions parsed = parse_options(options);
  certify::Journal journal;
  return run(under(kernel, contract), parsed, caller, journal);
}

Judgement merge(const attest_kernel& given, const char* contract, std::string_view line,
                const std::vector<std::string>& certificates, const Caller& caller) {
  const CampaignOptions options = parse_options(line);
  if (!options.shard.whole()) throw InvalidProblem("a shard of what is merged: leave shard= out");
  if (certificates.empty()) throw InvalidProblem("no certificate to merge; give those of shards");
  const attest_kernel kernel = under(given, contract);
  std::vector<certify::ShardCertificate> shards;
  for (const std::string& text : certificates) {
    shards.push_back({"certificate " + std::to_string(shards.size() + 1), text});
  }
  certify::Journal journal;
  const certify::MergedCampaign merged =
      certify::merge_shards(shards, certify::Shards::given, journal);
  certify::require_same_campaign(merged.header, certify::campaign_header({&kernel}, options),
                                 "certificate 1");
  return run(kernel, options, caller, journal);
}

Judgement check(const attest_kernel& given, const char* contract, const std::string& lines,
                std::string_view law_name) {
  const attest_kernel kernel = under(given, contract);
  Registry().add(&kernel);
  const proptest::Law& law = proptest::find_law(law_name);
  const auto [c, most, after] = parse_replay(lines);
  proptest::require_affordable(kernel.description, c.problem, proptest::Work::sampled_judgement);
  for (const proptest::Case& earlier : after) {
    proptest::require_affordable(kernel.description, earlier.problem,
                                 proptest::Work::sampled_judgement);
  }
  auto [found, checks] = certify::check_repeatedly(law, kernel, after, c, most);
  if (found.verdict == Verdict::passed) return {};
  if (found.verdict == Verdict::vacuous || found.verdict == Verdict::unsupported) {
    return {ATTEST_NOTHING_PROVED, "nothing is proved: " + found.message};
  }
  certify::Finding finding;
  finding.law = law.name;
  finding.verdict = found.verdict;
  finding.found = finding.shrunk = c;
  finding.message = std::move(found.message);
  finding.checks = checks;
  finding.after = after;
  finding.evidence = certify::evidence_of(kernel, finding);
  return {ATTEST_REFUSED, text_of(certify::finding_json(kernel.description.name, finding))};
}

}  // namespace attest::python
