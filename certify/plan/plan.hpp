#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "certify/campaign/campaign_options.hpp"
#include "certify/plan/pairs/pairwise.hpp"
#include "proptest/laws/law.hpp"

/// Plan of a campaign's checks, in a fixed order that depends on nothing but the options.
namespace attest::certify {

/// A case and the laws it meets.
struct PlannedCase {
  proptest::Case c;
  std::set<std::string> only;  // names of laws; empty: every law
  bool own = false;            // one of CampaignOptions::problems
};

/// The laws that compare with the exact reference: those that large and covering cases meet.
const std::set<std::string>& reference_laws();

/// Cases in a batch: long enough that a kernel's faults of state show, short enough to share.
inline constexpr std::uint64_t kBatchLength = 16;

/// Checks that one process of a campaign makes, the last of them of one small case: more calls than
/// a process may leave threads after.
inline constexpr std::uint64_t kLongSoak = 160;

/// The checks of one law on a few cases in a row. A batch is run by one thread, with worker
/// processes of its own, so that its results do not depend on what other batches do.
struct Batch {
  const proptest::Law* law = nullptr;
  std::vector<std::uint64_t> positions;  // in the plan, rising
};

/// Model shapes, then generated cases, then, unless their number is chosen, the fixed problems
/// (proptest/values/fixed_problems.hpp), cases for the pairs that none of these meet and long
/// problems, then the caller's own problems. With a mask the generated cases alone, each with that
/// mask. Geometry follows from `seed`, values from `data_seed`. [certify/plan/plan_test]
std::vector<PlannedCase> planned_cases(const attest_description& description,
                                       const CampaignOptions& options);

/// The same without the model shapes, which are large. [certify/plan/plan_test "without model
/// shapes"]
std::vector<PlannedCase> small_planned_cases(const attest_description& description,
                                             const CampaignOptions& options);

/// The laws of a campaign: the one chosen, or those that concern what the kernel claims and keep a
/// mask that was given.
std::vector<const proptest::Law*> laws_of(const attest_description& description,
                                          const CampaignOptions& options);

/// Generated case `index` with its data seed.
proptest::Case generated_case(const attest_description& description, const CampaignOptions& options,
                              std::uint64_t index);

/// The number of generated cases.
std::uint64_t generated_count(const CampaignOptions& options);

/// The checks of plan[first], … as batches, in an order that does not depend on `jobs`.
std::vector<Batch> batches_of(const std::vector<PlannedCase>& plan, std::uint64_t first,
                              const std::vector<const proptest::Law*>& laws);

}  // namespace attest::certify
