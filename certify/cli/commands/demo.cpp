#include <fmt/format.h>

#include <future>
#include <nlohmann/json.hpp>

#include "certify/campaign/campaign.hpp"
#include "certify/certificate.hpp"
#include "certify/cli/commands.hpp"
#include "certify/cli/report.hpp"
#include "certify/cli/terminal.hpp"

namespace attest::certify::cli {
namespace {

struct DemoOptions {
  std::uint64_t seed = 1;
  bool json = false;
};

CampaignOptions campaign_options(const DemoOptions& demo) {
  CampaignOptions options;
  constexpr std::uint64_t kCases = 8;
  options.cases = kCases;
  options.seed = demo.seed;
  return options;
}

CampaignResult campaign_on(const attest_kernel& kernel, const std::string& law,
                           CampaignOptions options, const Progress& progress) {
  options.law = law;
  return run_campaign(kernel, options, progress);
}

struct Broken {
  const char* kernel;
  const char* law;
  const char* what;
};

const std::vector<Broken>& broken_kernels() {
  static const std::vector<Broken> list{
      {"broken/zero_gradients", "reference_backward", "returns all-zero gradients"},
      {"broken/top_left_causal", "reference_forward", "aligns the causal mask top-left"},
      {"broken/missing_rescale", "reference_forward", "forgets to rescale when the maximum rises"}};
  return list;
}

std::vector<CampaignResult> broken_campaigns(const Registry& registry,
                                             const CampaignOptions& options) {
  std::vector<CampaignResult> results;
  for (const Broken& subject : broken_kernels()) {
    results.push_back(campaign_on(registry.find(subject.kernel), subject.law, options,
                                  [](std::uint64_t, std::uint64_t) {}));
  }
  return results;
}

int demo(const Registry& registry, const DemoOptions& given) {
  const CampaignOptions options = campaign_options(given);
  // The campaigns share nothing. The backward law judges O and LSE too.
  auto broken = std::async(std::launch::async, [&] { return broken_campaigns(registry, options); });
  std::vector<CampaignResult> results;
  {
    const std::string good_kernel = "cpu/flash2";
    ProgressLine line(good_kernel);
    results.push_back(campaign_on(
        registry.find(good_kernel), "reference_backward", options,
        [&line](std::uint64_t done, std::uint64_t total) { line.update(done, total); }));
  }
  bool as_expected = exit_code(results) == 0;
  for (CampaignResult& result : broken.get()) {
    as_expected = as_expected && result.verdict == Verdict::violated;
    results.push_back(std::move(result));
  }
  const int code = as_expected ? 0 : 1;
  if (given.json) {
    nlohmann::json object = certificate(registry, options, results);
    object["exit_code"] = code;
    fmt::print("{}\n", json_text(object));
    return code;
  }
  const CampaignResult& sound = results.front();
  fmt::print("A good kernel, judged by bounds derived from its inputs:\n");
  fmt::print("  {:<24} {}  {} cases, worst error/bound", sound.kernel, headline(sound),
             sound.passed());
  for (const auto& [output, worst] : sound.worst) fmt::print(" {}={:.2f}", output, worst.ratio);
  fmt::print("\n  one law of {}; `attest certify {}` asks for a certificate",
             proptest::laws().size(), sound.kernel);
  fmt::print("\n\nThree broken ones, each shrunk to its smallest failing case:\n");
  for (std::size_t k = 0; k < broken_kernels().size(); ++k) {
    const CampaignResult& result = results[k + 1];
    fmt::print("  {:<24} {}  it {}\n", result.kernel, headline(result), broken_kernels()[k].what);
    for (const Finding& finding : result.findings) print_finding(result.kernel, finding);
  }
  return code;
}

}  // namespace

void add_demo(CLI::App& app, const Registry& registry, Action& action) {
  CLI::App* command = app.add_subcommand(
      "demo", "judges a good kernel by its bounds, refuses three broken ones, shows why");
  auto options = std::make_shared<DemoOptions>();
  command->add_option("--seed", options->seed, "seed of the cases, default 1")
      ->check(whole_number());
  command->add_flag("--json", options->json, "as JSON");
  command->footer("Examples:\n  attest demo\n  attest demo --seed 7");
  command->callback([&registry, &action, options] {
    action = [&registry, options] { return demo(registry, *options); };
  });
}

}  // namespace attest::certify::cli
