#include "certify/shrunk_finding.hpp"

#include "certify/worker/isolated_kernel.hpp"

namespace attest::certify {
namespace {

// A case that fails only after others says so, for its line alone would not reproduce it.
void note_state(const attest_kernel& kernel, const proptest::Law& law, Finding& finding) {
  constexpr int kMostChecks = 64;
  const auto checks = worker::checks_until_failure(law, kernel, finding.shrunk, kMostChecks);
  if (checks == 1) return;
  finding.checks = checks.value_or(1);
  finding.message =
      checks ? "state: check " + std::to_string(*checks) +
                   " of this case in one process fails, those before it do not: " + finding.message
             : "state: fails in this campaign, but not in a process of its own: " + finding.message;
}

}  // namespace

void shrink_finding(const attest_kernel& kernel, Finding& finding, const Interrupted& interrupted) {
  const proptest::Law& law = proptest::find_law(finding.law);
  const auto fault = worker::kind_in(finding.message);
  const bool slow = fault == worker::FaultKind::hang;
  constexpr int kBudget = 200, kSlowBudget = 12;
  finding.shrunk = proptest::shrink(
      finding.found,
      [&](const proptest::Case& smaller) {
        if (interrupted()) return false;
        const proptest::LawResult tried = worker::check(law, kernel, smaller);
        if (tried.verdict != finding.verdict || worker::kind_in(tried.message) != fault) {
          return false;
        }
        finding.message = tried.message;
        return true;
      },
      slow ? kSlowBudget : kBudget);
  if (!interrupted()) note_state(kernel, law, finding);
}

}  // namespace attest::certify
