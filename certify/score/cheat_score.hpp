#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "certify/report/suspicion.hpp"
#include "certify/score/defect_score.hpp"
#include "certify/worker/process/process.hpp"
#include "fixtures/cheats.hpp"

/// Kernels that game their judge, and whether each is refused and named.
namespace attest::certify {

struct CheatScore {
  DefectScore score;  // how soon it was caught
  std::vector<Suspicion> suspicions;
  std::string expected;  // what a report must say of it

  /// Tells whether it was caught and a suspicion names its deed.
  bool named() const;
};

/// score_defect of one cheat, called in worker processes, and what its finding shows.
/// [certify/score/cheat_score_test "every cheat"]
CheatScore score_cheat(const fixtures::Cheat& cheat, const PlainKernels& plain,
                       const CampaignOptions& options, const worker::Limits& limits,
                       const Interrupted& interrupted);

/// Totals, and every cheat.  [certify/score/cheat_score_test "every cheat"]
nlohmann::json cheats_json(const std::vector<CheatScore>& scores);

}  // namespace attest::certify
