#include "certify/cli/commands/certify_estimate.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "certify/cli/interrupt.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/plan/estimate.hpp"
#include "certify/printable.hpp"
#include "core/text/thousands.hpp"

namespace attest::certify::cli {
namespace {

// No more figures than an estimate has.
std::string duration_text(double seconds) {
  constexpr double kMinute = 60, kHour = 3600;
  if (seconds < 1) return "below 1 s";
  if (seconds < 2 * kMinute) return fmt::format("{:.0f} s", seconds);
  if (seconds < 2 * kHour) return fmt::format("{:.0f} min", seconds / kMinute);
  return fmt::format("{:.1f} h", seconds / kHour);
}

}  // namespace

int tell_estimates(const std::vector<const attest_kernel*>& kernels, const CampaignOptions& options,
                   bool as_json) {
  constexpr int kNothingProven = 3;
  double seconds = 0;
  nlohmann::json list = nlohmann::json::array();
  for (const attest_kernel* kernel : kernels) {
    const char* const name = kernel->description.name;
    const ElapsedLine line(fmt::format("sample of {}", name));
    const Estimate one = estimate_campaign(*kernel, options, interrupted);
    if (interrupted()) {
      fmt::print(stderr, "attest: interrupted, nothing is estimated\n");
      return kNothingProven;
    }
    seconds += one.seconds;
    list.push_back({{"kernel", name},
                    {"cases", one.cases},
                    {"checks", one.checks},
                    {"seconds", one.seconds},
                    {"sample_seconds", one.sample_seconds}});
    if (as_json) continue;
    fmt::print("{}  about {}  ({} checks on {} cases, {} at a time; a sample took {:.1f} s)\n",
               bold(printable(name)), duration_text(one.seconds), thousands(one.checks),
               thousands(one.cases), options.jobs, one.sample_seconds);
  }
  if (as_json) {
    fmt::print("{}\n", json_text({{"schema", "attest-estimate-1"},
                                  {"kernels", list},
                                  {"jobs", options.jobs},
                                  {"shard", to_string(options.shard)},
                                  {"seconds", seconds},
                                  {"exit_code", 0}}));
  } else if (kernels.size() > 1) {
    fmt::print("{} kernels: about {}\n", kernels.size(), duration_text(seconds));
  }
  return 0;
}

}  // namespace attest::certify::cli
