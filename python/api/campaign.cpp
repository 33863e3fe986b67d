#include "python/api/campaign.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "certify/campaign.hpp"
#include "certify/case_text.hpp"
#include "certify/certificate.hpp"
#include "certify/own_problems.hpp"
#include "certify/plan.hpp"
#include "certify/tier.hpp"
#include "certify/told_findings.hpp"
#include "certify/worker/isolated_kernel.hpp"
#include "core/error.hpp"
#include "core/registry.hpp"
#include "core/suggest.hpp"
#include "proptest/affordable.hpp"
#include "python/api/contract.hpp"

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

// Returns the kernel under the contract, where one is given.
attest_kernel under(const attest_kernel& kernel, const char* contract) {
  attest_kernel changed = kernel;
  if (contract == nullptr) return changed;
  const attest_description described = parse_contract(contract);
  changed.description.numerics = described.numerics;
  changed.description.empty_row = described.empty_row;
  return changed;
}

std::uint64_t number(const std::string& name, const std::string& text, std::uint64_t least,
                     std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && value >= least && value <= most) return value;
  throw InvalidProblem(name + "=" + text + " must be a whole number from " + std::to_string(least) +
                       " to " + std::to_string(most));
}

struct Option {
  const char* name;
  void (*read)(CampaignOptions&, const std::string& name, const std::string& text);
};

constexpr Option kOptions[] = {
    {"tier", [](auto& o, auto&, auto& text) { o.tier = certify::parse_tier(text); }},
    {"seed", [](auto& o, auto& name, auto& text) { o.seed = number(name, text, 0); }},
    {"data_seed", [](auto& o, auto& name, auto& text) { o.data_seed = number(name, text, 0); }},
    {"cases", [](auto& o, auto& name, auto& text) { o.cases = number(name, text, 0, 1000000000); }},
    {"jobs", [](auto& o, auto& name,
                auto& text) { o.jobs = static_cast<unsigned>(number(name, text, 1, 1024)); }},
    {"only", [](auto& o, auto&, auto& text) { o.law = proptest::find_law(text).name; }},
    {"problem", [](auto& o, auto&, auto& text) { o.problems.push_back(text); }}};

CampaignOptions parse_options(std::string_view line) {
  CampaignOptions options;
  options.jobs = std::max(1U, std::thread::hardware_concurrency());
  while (!line.empty()) {
    const std::string word(line.substr(0, line.find(' ')));
    line.remove_prefix(std::min(line.size(), word.size() + 1));
    if (word.empty()) continue;
    const std::string name = word.substr(0, word.find('='));
    std::vector<std::string> names;
    for (const Option& option : kOptions) names.emplace_back(option.name);
    const auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end() || name == word) {
      throw InvalidProblem("unknown option '" + word + "'" + did_you_mean(name, names) +
                           "; write for example tier=fast seed=7");
    }
    kOptions[known - names.begin()].read(options, name, word.substr(name.size() + 1));
  }
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

}  // namespace

Judgement certify(const attest_kernel& given, const char* contract, std::string_view line,
                  const Caller& caller) {
  const CampaignOptions options = parse_options(line);
  const attest_kernel kernel = under(given, contract);
  Registry registry;
  registry.add(&kernel);
  certify::require_affordable_problems(kernel, options.problems);
  Asker asker(caller);
  const CampaignResult result = certify::run_campaign(
      kernel, options, [&](std::uint64_t done, std::uint64_t total) { asker.tell(done, total); },
      {[&] { return asker.ended(); }});
  json object = certify::certificate(registry, options, {result});
  object["kernels"][0]["not_seen"] = kNotSeen;
  return {outcome_of(result), text_of(object)};
}

Judgement check(const attest_kernel& given, const char* contract, const std::string& case_line,
                std::string_view law_name) {
  const attest_kernel kernel = under(given, contract);
  Registry().add(&kernel);
  const proptest::Law& law = proptest::find_law(law_name);
  const proptest::Case c = certify::parse_case_text(case_line, {});
  proptest::require_affordable(kernel.description, c.problem, proptest::Work::sampled_judgement);
  proptest::LawResult found = certify::worker::check(law, kernel, c);
  if (found.verdict == Verdict::passed) return {};
  if (found.verdict == Verdict::vacuous || found.verdict == Verdict::unsupported) {
    return {ATTEST_NOTHING_PROVED, "nothing is proved: " + found.message};
  }
  certify::Finding finding;
  finding.law = law.name;
  finding.verdict = found.verdict;
  finding.found = finding.shrunk = c;
  finding.message = std::move(found.message);
  finding.evidence = certify::evidence_of(kernel, finding);
  return {ATTEST_REFUSED, text_of(certify::finding_json(kernel.description.name, finding))};
}

}  // namespace attest::python
