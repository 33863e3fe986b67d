#include "certify/campaign/merge.hpp"

#include <fmt/format.h>

#include <map>

#include "certify/audit/seal.hpp"
#include "certify/campaign/host.hpp"
#include "certify/files.hpp"
#include "certify/report/certificate_fields.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

// Returns the certificate, which holds what merging needs.
json certificate_of(const ShardCertificate& shard, Shards asked) {
  json object = json::parse(shard.text, nullptr, false);
  const bool ours = object.is_object() && object.value("schema", "") == "attest-certificate-1";
  if (!ours)
    throw InvalidProblem("'" + shard.name + "' is no certificate of this version of attest");
  const bool of_shard = object.contains("journal") && object["journal"].is_object() &&
                        object["journal"].contains("campaign") &&
                        object["journal"].contains("records");
  if (!of_shard) throw InvalidProblem("'" + shard.name + "' is not the certificate of a shard");
  if (const std::string fault = seal_fault(object); !fault.empty()) {
    throw InvalidProblem("'" + shard.name + "' " + fault + "; run that shard again");
  }
  if (asked == Shards::all && object.value("interrupted", false)) {
    throw InvalidProblem("'" + shard.name + "' was interrupted; run that shard again, to its end");
  }
  return object;
}

proptest::Tier tier_of(const std::string& word) {
  for (const auto tier : {proptest::Tier::smoke, proptest::Tier::fast, proptest::Tier::full}) {
    if (word == proptest::name(tier)) return tier;
  }
  throw InvalidProblem("unknown tier '" + word + "'");
}

// Requires that a shard ran on a machine of the kind of the first one's.
void require_one_kind(const json& first, const std::string& first_name, const json& host,
                      const std::string& name) {
  const auto found = other_kind(first, host);
  if (!found) return;
  throw InvalidProblem(fmt::format(
      "'{}' ran with host.{} {}, '{}' with {}: built-in kernels and bounds depend on it; run the "
      "shards on machines of one kind{}",
      first_name, found->key, found->one, name, found->other,
      found->key == "cpu_target" ? ", or all with one ATTEST_CPU_TARGET" : ""));
}

MergedCampaign merged_campaign(const std::vector<ShardCertificate>& shards, Shards asked,
                               Journal& journal) {
  MergedCampaign merged;
  json first_host;
  std::map<std::uint32_t, std::string> seen;
  std::uint32_t count = 0;
  for (const ShardCertificate& certificate : shards) {
    const json object = certificate_of(certificate, asked), &part = object.at("journal");
    const std::string& name = certificate.name;
    const json host = object.value("host", json::object());
    json header = part.at("campaign");
    const Shard shard = parse_shard(header.value("shard", ""));
    header["shard"] = to_string(Shard{});
    if (merged.header.is_null()) {
      merged.header = header;
      first_host = host;
      count = shard.count;
    }
    require_one_kind(first_host, shards.front().name, host, name);
    journal.add_processor(host.value("processor", ""));
    require_same_campaign(header, merged.header, name);
    if (shard.count != count) {
      throw InvalidProblem("'" + name + "' is shard " + to_string(shard) + ", others are of " +
                           std::to_string(count));
    }
    const auto [first, fresh] = seen.emplace(shard.index, name);
    if (!fresh) {
      throw InvalidProblem("'" + first->second + "' and '" + name + "' are both shard " +
                           to_string(shard));
    }
    const KernelNames names = renamed_kernels(header, merged.header);
    journal.read_records(part.at("records"), name, names);
    const json timings = object.value("timings", json::object());
    const json of_kernels = timings.value("seconds", json::object());
    for (const auto& [kernel, seconds] : of_kernels.items()) {
      const auto renamed = names.find(kernel);
      merged.seconds[renamed == names.end() ? kernel : renamed->second] += seconds.get<double>();
    }
  }
  for (std::uint32_t index = 1; index <= count && asked == Shards::all; ++index) {
    if (seen.count(index) == 0) {
      throw InvalidProblem("shard " + to_string(Shard{index, count}) + " is missing; pass all");
    }
  }
  const json& header = merged.header;
  merged.options.tier = tier_of(header.at("tier"));
  merged.options.seed = header.at("seed");
  merged.options.data_seed = header.at("data_seed").get<std::uint64_t>();
  if (!header.at("cases").is_null()) merged.options.cases = header.at("cases").get<std::uint64_t>();
  merged.options.shapes = parse_shapes(header.value("shapes", "model"));
  if (!header.at("law").is_null()) merged.options.law = header.at("law").get<std::string>();
  const json mask = header.value("mask", json(nullptr));
  if (mask.is_object()) merged.options.mask = parse_campaign_mask(mask.at("spelling"));
  merged.options.problems = header.at("problems").get<std::vector<std::string>>();
  for (const json& kernel : header.at("kernels")) {
    merged.kernels.push_back(kernel.at("kernel"));
    merged.isolation.push_back(kernel.at("isolation"));
  }
  return merged;
}

}  // namespace

MergedCampaign merge_shards(const std::vector<ShardCertificate>& shards, Shards asked,
                            Journal& journal) {
  return reading_certificate([&] { return merged_campaign(shards, asked, journal); });
}

MergedCampaign merge_shards(const std::vector<std::string>& paths, Journal& journal) {
  std::vector<ShardCertificate> shards;
  for (const std::string& path : paths) {
    shards.push_back({path, read_file(path)});
  }
  return merge_shards(shards, Shards::all, journal);
}

}  // namespace attest::certify
