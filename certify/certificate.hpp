#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "certify/campaign/campaign.hpp"
#include "core/registry.hpp"

namespace attest::certify {

/// The certificate of a campaign, not sealed yet: keys sorted, equal for equal options on one
/// machine but for the object `timings`. That of a shard holds the records of its journal, for
/// `attest certify
/// --merge`. Fields: certify/schemas/certificate.schema.json.  [certify/campaign/campaign_test
/// "certificates"]
nlohmann::json certificate(const Registry& registry, const CampaignOptions& options,
                           const std::vector<CampaignResult>& results,
                           const Journal* journal = nullptr);

/// Returns what a kernel says about itself, in words.
nlohmann::json description_json(const attest_description& description);

/// Lists suspicions as objects with a name and a deed.
nlohmann::json suspicions_json(const std::vector<Suspicion>& suspicions);

/// A finding of a kernel as an object, as the certificate has it.
nlohmann::json finding_json(const std::string& kernel, const Finding& finding);

/// A case as an object.
nlohmann::json case_json(const proptest::Case& c);

}  // namespace attest::certify
