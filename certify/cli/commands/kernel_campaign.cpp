#include "certify/cli/commands/kernel_campaign.hpp"

#include "certify/cli/interrupt.hpp"
#include "certify/cli/terminal.hpp"

namespace attest::certify::cli {

CampaignResult kernel_campaign(const Registry& registry, const io::ScheduleRegistry& schedules,
                               const attest_kernel& kernel, const CampaignOptions& options,
                               Surveillance surveillance) {
  if (!surveillance.interrupted) surveillance.interrupted = interrupted;
  ProgressLine line(kernel.description.name);
  CampaignResult result = run_campaign(
      kernel, options,
      [&line](std::uint64_t done, std::uint64_t total) { line.update(done, total); }, surveillance);
  if (!options.law && options.shard.whole() && !surveillance.interrupted()) {
    const auto audit = [&](NamedSchedule which) {
      return audit_schedule(schedules, kernel, which,
                            {options.tier, options.seed, options.mask, options.shapes},
                            registry.counted_code(kernel.description.name));
    };
    attach(result, audit(NamedSchedule::schedule), audit(NamedSchedule::schedule_backward));
  }
  return result;
}

}  // namespace attest::certify::cli
