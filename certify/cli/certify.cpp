#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "certify/campaign.hpp"
#include "certify/certificate.hpp"
#include "certify/cli/commands.hpp"
#include "certify/cli/kernels.hpp"
#include "certify/cli/report.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/printable.hpp"
#include "core/error.hpp"
#include "core/suggest.hpp"

namespace attest::certify::cli {
namespace {

constexpr std::uint64_t kMostCases = 1000000000;

struct CertifyOptions {
  std::vector<std::string> kernels;
  bool all = false, json = false;
  std::string tier = "smoke", only, out;
  std::uint64_t seed = 1;
  std::optional<std::uint64_t> cases;
  IsolationOptions isolation;
};

proptest::Tier parse_tier(const std::string& text) {
  std::vector<std::string> names;
  for (const auto tier : {proptest::Tier::smoke, proptest::Tier::fast, proptest::Tier::full}) {
    if (text == proptest::name(tier)) return tier;
    names.emplace_back(proptest::name(tier));
  }
  throw InvalidProblem("unknown tier '" + text + "'" + did_you_mean(text, names) +
                       " (smoke, fast, full)");
}

std::vector<std::string> chosen_kernels(const Registry& registry, const CertifyOptions& options) {
  if (options.all && !options.kernels.empty()) {
    throw InvalidProblem("--all and kernel names together; pass one of them");
  }
  if (options.kernels.empty() && !options.all) {
    throw InvalidProblem("no kernel given; pass names (attest list kernels) or --all");
  }
  std::vector<std::string> names;
  if (!options.all) {
    for (const std::string& name : options.kernels) {  // a kernel named twice runs once
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
  }
  for (const std::string& name : registry.names()) {
    if (name.rfind("broken/", 0) != 0) names.push_back(name);
  }
  return names;
}

int certify(const Registry& registry, const io::ScheduleRegistry& schedules,
            const CertifyOptions& options) {
  CampaignOptions campaign;
  campaign.tier = parse_tier(options.tier);
  campaign.seed = options.seed;
  campaign.cases = options.cases;
  if (!options.only.empty()) campaign.law = proptest::find_law(options.only).name;
  Kernels known(registry, options.isolation);
  std::vector<const attest_kernel*> kernels;
  for (const std::string& word : chosen_kernels(registry, options)) {
    const std::vector<const attest_kernel*> found = known.find(word);
    kernels.insert(kernels.end(), found.begin(), found.end());
  }
  if (!options.out.empty()) require_writable(options.out);  // before the work, not after it
  std::vector<CampaignResult> results;
  for (const attest_kernel* kernel : kernels) {
    ProgressLine line(kernel->description.name);
    results.push_back(run_campaign(
        *kernel, campaign,
        [&line](std::uint64_t done, std::uint64_t total) { line.update(done, total); }));
    if (!campaign.law) {
      attach(results.back(), audit_schedule(schedules, *kernel, campaign.tier, campaign.seed));
    }
    line.clear();
    if (!options.json) {
      print_result(*kernel, results.back());
      if (options.cases && outcome(results.back()) == "incomplete") {
        fmt::print("  run it without --cases: a tier adds the cases that are missing\n");
      }
    }
  }
  const std::string text = certificate(known.registry(), campaign, results).dump(2) + "\n";
  if (!options.out.empty()) write_file(options.out, text);
  if (options.json) fmt::print("{}", text);
  if (!options.json && !options.out.empty())
    fmt::print("certificate: {}\n", printable(options.out));
  return exit_code(results);
}

}  // namespace

void add_certify(CLI::App& app, const Registry& registry, const io::ScheduleRegistry& schedules,
                 Action& action) {
  CLI::App* command =
      app.add_subcommand("certify", "the campaign: every law on model shapes and generated cases");
  auto options = std::make_shared<CertifyOptions>();
  command->add_option("kernel", options->kernels,
                      "names of kernels (attest list kernels) or libraries (./libmine.so)");
  command->add_flag("--all", options->all, "every kernel that is not broken on purpose");
  command->add_option("--tier", options->tier, "smoke (default), fast or full");
  command->add_option("--seed", options->seed, "seed of the campaign, default 1")
      ->check(whole_number());
  command->add_option("--cases", options->cases, "generated cases instead of the tier's")
      ->check(whole_number(kMostCases));
  command
      ->add_option("--only", options->only, "only this law (attest list laws); certifies nothing")
      ->check(not_empty());
  command->add_option("--out", options->out, "write the certificate (JSON) to this file")
      ->check(not_empty());
  command->add_flag("--json", options->json, "print the certificate instead of the report");
  add_isolation_options(*command, options->isolation);
  command->footer(
      "Examples:\n"
      "  attest certify cpu/flash2\n"
      "  attest certify ./libmine.so\n"
      "  attest certify --all --tier fast --seed 7 --out certificate.json\n"
      "  attest certify broken/missing_rescale --only reference_forward");
  command->callback([&registry, &schedules, &action, options] {
    action = [&registry, &schedules, options] { return certify(registry, schedules, *options); };
  });
}

}  // namespace attest::certify::cli
