#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "certify/campaign/campaign.hpp"
#include "fixtures/corpus.hpp"

/// Broken kernels on purpose, and how soon which law refuses each.
namespace attest::certify {

struct DefectScore {
  std::string kernel, smallest;
  std::optional<Finding> caught;      // by the first check that refused it, shrunk
  std::uint64_t cases = 0;            // that were met until then
  std::uint64_t planned_cases = 0;    // of the whole campaign
  bool interrupted = false;           // before anything was found: not judged
  std::vector<std::string> accepted;  // published rules that let it through
  double seconds = 0;

  /// Tells whether the finding was shrunk to at most four queries and four keys.
  bool shrunk_to_few() const;

  /// Tells whether the finding was shrunk to a problem that in no size exceeds the smallest
  /// documented.
  /// [certify/score/defect_score_test "documented"]
  bool shrunk_to_smallest() const;
};

/// Plain kernels that FlashAttention's rule compares with.
struct PlainKernels {
  const attest_kernel& attention;
  const attest_kernel& loss;
};

/// Runs the checks of a campaign, but those on model shapes, until one refuses the kernel: the
/// reference on every case, then the other laws, then long problems. Asks the published rules
/// then. Interrupted before, the kernel is not judged.  [certify/score/defect_score_test]
DefectScore score_defect(const fixtures::CorpusEntry& entry, const PlainKernels& plain,
                         const CampaignOptions& options, const Interrupted& interrupted);

/// The score as an object: totals, and every defect.  [certify/score/defect_score_test]
nlohmann::json score_json(const std::vector<DefectScore>& scores, const CampaignOptions& options);

}  // namespace attest::certify
