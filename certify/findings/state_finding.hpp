#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "proptest/laws/law.hpp"

/// Failures that come of what a kernel's process did before.
namespace attest::certify {

/// A case that fails after others in one process, and those.
struct StatefulCase {
  std::vector<proptest::Case> after;  // in this order; none of them can be left out
  proptest::Case failing;
};

/// Tells whether a result is the failure that is looked for.
using Alike = std::function<bool(const proptest::LawResult&)>;

/// The result of a check in a fresh process, after those of `after`.
proptest::LawResult check_after(const proptest::Law& law, const attest_kernel& kernel,
                                const std::vector<proptest::Case>& after, const proptest::Case& c);

/// A result, and how many checks of the case it took.
struct RepeatedCheck {
  proptest::LawResult result;
  int checks = 1;
};

/// Checks a case up to `most` times in one process, until it fails; after those of `after`, in a
/// process of their own where there are any.  [python/api/campaign_test "earlier checks"]
RepeatedCheck check_repeatedly(const proptest::Law& law, const attest_kernel& kernel,
                               const std::vector<proptest::Case>& after, const proptest::Case& c,
                               int most);

/// Looks for the shortest list of earlier checks that brings the failure: of `sequence`, which a
/// process carried out and in which `failing` occurs, those before it, parts left out as long as it
/// still fails. Then the cases shrink together: a property in which an earlier case equals the
/// failing one changes with it; and at last the earlier ones by themselves. Nothing when it does
/// not fail again, and for a kernel that is not isolated. Cost: about 200 processes.
/// [certify/findings/state_finding_test "a plan kept by head dimension"]
std::optional<StatefulCase> shortest_history(const proptest::Law& law, const attest_kernel& kernel,
                                             const std::vector<proptest::Case>& sequence,
                                             const proptest::Case& failing, const Alike& alike);

}  // namespace attest::certify
