#pragma once

#include <string>
#include <vector>

#include "certify/campaign_options.hpp"
#include "certify/journal.hpp"

namespace attest::certify {

/// The campaign whose shards were merged.
struct MergedCampaign {
  CampaignOptions options;
  std::vector<std::string> kernels;
  nlohmann::json header;  // as campaign_header gives it for the whole
};

/// Reads the certificates of all shards of one campaign into the journal; run_campaign then gives
/// what the campaign would have given unsharded. Throws InvalidProblem for a file that is no
/// certificate of a shard, an interrupted one, one of another campaign, a shard twice or missing.
/// [certify/sharing_test "merging"]
MergedCampaign merge_shards(const std::vector<std::string>& paths, Journal& journal);

}  // namespace attest::certify
