#pragma once

#include <optional>
#include <string>

#include "core/abi/attest_kernel.h"
#include "core/mask/mask_shape.hpp"
#include "core/problem.hpp"

namespace attest::certify {

/// A mask that every case of a campaign has in place of its own.
struct CampaignMask {
  std::string spelling;
  std::optional<PatternShape> shape;  // of a mask that fixes it
  Pattern pattern;                    // read once: of that shape, else of one for its form alone
  std::string content;                // sha256_of_file of its file; empty without one
};

/// Requires: a mask for any number of heads and sequences, so no key lengths and no packed
/// sequences, whose file, if it has one, can be read. Else throws InvalidProblem.
/// [certify/campaign/campaign_mask_test "refused"]
CampaignMask parse_campaign_mask(const std::string& text);

/// Throws InvalidProblem for a kernel that claims no form of a mask of pairs: not one of its cases
/// would have the mask.  [certify/campaign/campaign_mask_test "no form of the mask"]
void require_form(const attest_kernel& kernel, const CampaignMask& mask);

/// Throws InvalidProblem where the mask's file is another than it was: results of two masks are of
/// neither.  [certify/campaign/campaign_mask_test "a file that changes"]
void require_unchanged(const CampaignMask& mask);

/// The problem with that mask, of its sizes where it fixes them; fewer sequences and heads where
/// there would be more than 2^22 pairs.  [certify/campaign/campaign_mask_test "every case"]
Problem with_mask(Problem problem, const CampaignMask& mask);

}  // namespace attest::certify
