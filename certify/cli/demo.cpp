#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "certify/campaign.hpp"
#include "certify/certificate.hpp"
#include "certify/cli/commands.hpp"
#include "certify/cli/report.hpp"
#include "certify/cli/terminal.hpp"

namespace attest::certify::cli {
namespace {

CampaignResult campaign_on(const Registry& registry, const std::string& kernel,
                           const std::string& law) {
  CampaignOptions options;
  constexpr std::uint64_t kCases = 8;
  options.cases = kCases;
  options.law = law;
  ProgressLine line(kernel);
  return run_campaign(
      registry.find(kernel), options,
      [&line](std::uint64_t done, std::uint64_t total) { line.update(done, total); });
}

int demo(const Registry& registry, std::size_t json_flags) {
  struct Broken {
    const char* kernel;
    const char* law;
    const char* what;
  };
  const std::vector<Broken> broken{
      {"broken/zero_gradients", "reference_backward", "returns all-zero gradients"},
      {"broken/top_left_causal", "reference_forward", "aligns the causal mask top-left"},
      {"broken/missing_rescale", "reference_forward", "forgets to rescale when the maximum rises"}};
  std::vector<CampaignResult> results{campaign_on(registry, "cpu/flash2", "reference_forward"),
                                      campaign_on(registry, "cpu/flash2", "reference_backward")};
  bool as_expected = exit_code(results) == 0;
  for (const Broken& subject : broken) {
    results.push_back(campaign_on(registry, subject.kernel, subject.law));
    as_expected = as_expected && results.back().verdict == Verdict::violated;
  }
  const int code = as_expected ? 0 : 1;
  if (json_flags > 0) {
    CampaignOptions options;
    nlohmann::json object = certificate(registry, options, results);
    object["exit_code"] = code;
    fmt::print("{}\n", object.dump(2));
    return code;
  }
  fmt::print("A good kernel, judged by bounds derived from its inputs:\n");
  for (std::size_t k = 0; k < 2; ++k) {
    const CampaignResult& result = results[k];
    fmt::print("  {:<24} {}  {} cases, worst error/bound", result.kernel, headline(result),
               result.passed());
    for (const auto& [output, worst] : result.worst) fmt::print(" {}={:.2f}", output, worst.ratio);
    fmt::print("\n");
  }
  fmt::print("\nThree broken ones, each shrunk to its smallest failing case:\n");
  for (std::size_t k = 0; k < broken.size(); ++k) {
    const CampaignResult& result = results[k + 2];
    fmt::print("  {:<24} {}  it {}\n", result.kernel, headline(result), broken[k].what);
    for (const Finding& finding : result.findings) print_finding(result.kernel, finding);
  }
  return code;
}

}  // namespace

void add_demo(CLI::App& app, const Registry& registry, Action& action) {
  CLI::App* command =
      app.add_subcommand("demo", "certifies a good kernel, refuses three broken ones, shows why");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "as JSON");
  command->footer("Example:\n  attest demo");
  command->callback([&registry, &action, json] {
    action = [&registry, json] { return demo(registry, *json ? 1 : 0); };
  });
}

}  // namespace attest::certify::cli
