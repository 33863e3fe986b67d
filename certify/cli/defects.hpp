#pragma once

#include <string>

#include "certify/campaign_options.hpp"
#include "core/registry.hpp"

namespace attest::certify::cli {

/// Where a score goes: a file when named, standard output as text or JSON.
struct ScoreOutput {
  std::string file;
  bool json = false;
};

/// `attest certify --defects`: the score of the corpus, and the correct variants' campaigns. Exit
/// code 0 when every defect is caught and no correct variant fails, 1 otherwise, 3 when
/// interrupted.
int certify_defects(const Registry& registry, const CampaignOptions& options,
                    const ScoreOutput& output);

}  // namespace attest::certify::cli
