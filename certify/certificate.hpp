#pragma once

#include <functional>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "certify/campaign.hpp"
#include "core/registry.hpp"

namespace attest::certify {

/// The certificate of a campaign: keys sorted, equal for equal options on one machine but for the
/// object `timings`. That of a shard holds the records of its journal, for `attest certify
/// --merge`. Fields: certify/certificate.schema.json.  [certify/campaign_test "certificates"]
nlohmann::json certificate(const Registry& registry, const CampaignOptions& options,
                           const std::vector<CampaignResult>& results,
                           const Journal* journal = nullptr);

/// What a kernel says about itself, in words.
nlohmann::json description_json(const attest_description& description);

/// A case as an object.
nlohmann::json case_json(const proptest::Case& c);

/// Throws InvalidProblem unless a regular file can be written at `path`, after following symbolic
/// links: a directory, device, pipe or socket is refused. Creates nothing there.
/// [certify/written_files_test "only regular files are written"]
void require_writable(const std::string& path);

/// Writes to a temporary name beside the file, then renames: it is old, new or absent, never half.
/// A symbolic link stays and its target is written. Throws InvalidProblem when that fails.
/// [certify/written_files_test "files are written whole or not at all"]
void write_file(const std::string& path, const std::string& text);

/// The same with what `write` writes; when it throws, nothing is left behind.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace attest::certify
