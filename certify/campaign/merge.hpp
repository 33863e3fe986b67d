#pragma once

#include <map>
#include <string>
#include <vector>

#include "certify/campaign/campaign_options.hpp"
#include "certify/campaign/journal.hpp"

namespace attest::certify {

/// The campaign whose shards were merged.
struct MergedCampaign {
  CampaignOptions options;
  std::vector<std::string> kernels;
  std::vector<std::string> isolation;     // options of each, as the line of a finding has them
  nlohmann::json header;                  // as campaign_header gives it for the whole
  std::map<std::string, double> seconds;  // of the shards of a kernel together
};

/// Certificate of a shard, and what messages call it.
struct ShardCertificate {
  std::string name, text;
};

/// Tells which shards must be there, run to their ends: all, or those given.
enum class Shards { all, given };

/// Reads the certificates of one campaign's shards into the journal; run_campaign then gives what
/// the campaign would have given unsharded, and runs what no shard has. Throws InvalidProblem for
/// what is no certificate of a shard, one that was changed, one of another campaign, a shard twice
/// and shards of two kinds of machines (host_json: machine, cpu_target); and, where all must be
/// there, an interrupted or a missing one. [certify/campaign/sharing_test "merging"]
MergedCampaign merge_shards(const std::vector<ShardCertificate>& shards, Shards asked,
                            Journal& journal);

/// Reads the certificates of all shards from files.
MergedCampaign merge_shards(const std::vector<std::string>& paths, Journal& journal);

}  // namespace attest::certify
