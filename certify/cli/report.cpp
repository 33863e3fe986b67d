#include "certify/cli/report.hpp"

#include <fmt/format.h>

#include "certify/cli/terminal.hpp"

namespace attest::certify::cli {

void print_finding(const std::string& kernel, const Finding& finding) {
  fmt::print("    {} {}: {}\n", finding.law, name(finding.verdict), finding.message);
  fmt::print("    reproduce: {}\n", reproduce_line(kernel, finding.law, finding.shrunk));
}

std::string headline(const CampaignResult& result) {
  const std::string_view word = outcome(result);
  if (word == "incomplete") return warning("INCOMPLETE");
  if (word == "law_holds") return good("LAW HOLDS");
  return result.verdict == Verdict::passed ? good("CERTIFIED") : verdict_text(result.verdict);
}

void print_result(const attest_kernel& kernel, const CampaignResult& result) {
  fmt::print("{}  {}  ({} cases, {} checks passed, {} vacuous)\n", bold(result.kernel),
             headline(result), result.cases, result.passed(), result.vacuous());
  for (const auto& [law, count] : result.laws) {
    fmt::print("  {:<24} passed {:>5}  vacuous {:>4}  unsupported {:>4}", law, count.passed,
               count.vacuous, count.unsupported);
    if (count.improbable > 0) fmt::print("  improbable once {}", count.improbable);
    if (count.failed > 0) fmt::print("  {}", bad("FAILED"));
    fmt::print("\n");
  }
  if (!result.worst.empty()) {
    fmt::print("  worst error/bound       ");
    for (const auto& [output, worst] : result.worst) fmt::print(" {}={:.3f}", output, worst.ratio);
    fmt::print("\n");
  }
  const std::vector<std::string> missed = unexercised(kernel.description, result);
  if (!missed.empty() && outcome(result) != "incomplete") {
    fmt::print("  claimed, never exercised: {}\n", fmt::join(missed, " "));
  }
  for (const auto& [feature, count] : result.not_claimed) {
    fmt::print("  not covered: {} ({} checks)\n", feature, count);
  }
  for (const std::string& refusal : result.refused) fmt::print("  {}\n", warning(refusal));
  if (outcome(result) == "incomplete") {
    for (const std::string& gap : result.gaps) {
      fmt::print("  {} {}\n", warning("incomplete:"), gap);
    }
  }
  for (const Finding& finding : result.findings) print_finding(result.kernel, finding);
}

}  // namespace attest::certify::cli
