#pragma once

#include <string>
#include <vector>

#include "certify/campaign/campaign_options.hpp"
#include "certify/worker/process/process.hpp"
#include "core/registry.hpp"

namespace attest::certify::cli {

/// Where a score goes: a file when named, standard output as text or JSON.
struct ScoreOutput {
  std::string file;
  bool json = false;
};

/// `attest certify --defects`: the scores of the corpus and of the kernels that game their judge,
/// and the correct variants' campaigns; with names, the scores of those kernels alone. Exit code 0
/// when every defect is caught, every cheat caught and named, and no correct variant fails, 1
/// otherwise, 3 when interrupted. Throws InvalidProblem for a name that is not among them.
int certify_defects(const Registry& registry, const std::vector<std::string>& names,
                    const CampaignOptions& options, const worker::Limits& limits,
                    const ScoreOutput& output);

}  // namespace attest::certify::cli
