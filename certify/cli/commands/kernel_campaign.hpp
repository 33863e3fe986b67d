#pragma once

#include "certify/campaign/campaign.hpp"
#include "core/registry.hpp"
#include "io/schedule/schedule.hpp"

namespace attest::certify::cli {

/// The campaign of one kernel, its progress on standard error; beside it the I/O of the schedules
/// that the kernel names, where the whole campaign ran on masks of its own. Without another end
/// (surveillance.interrupted) a signal ends it.
CampaignResult kernel_campaign(const Registry& registry, const io::ScheduleRegistry& schedules,
                               const attest_kernel& kernel, const CampaignOptions& options,
                               Surveillance surveillance = {});

}  // namespace attest::certify::cli
