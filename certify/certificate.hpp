#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "certify/campaign.hpp"
#include "core/registry.hpp"

namespace attest::certify {

/// The certificate of a campaign: keys sorted, equal for equal options on one machine but for the
/// object `timings`. Fields: certify/certificate.schema.json.  [certify/certificate_test]
nlohmann::json certificate(const Registry& registry, const CampaignOptions& options,
                           const std::vector<CampaignResult>& results);

/// What a kernel says about itself, in words.
nlohmann::json description_json(const attest_description& description);

/// A case as an object.
nlohmann::json case_json(const proptest::Case& c);

/// Throws InvalidProblem unless a file can be written at `path`; creates nothing there.
void require_writable(const std::string& path);

/// Writes to a temporary name beside `path`, then renames: `path` is old, new or absent, never
/// half. Throws InvalidProblem when that fails.
void write_file(const std::string& path, const std::string& text);

}  // namespace attest::certify
