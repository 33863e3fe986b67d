#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "certify/campaign/batches.hpp"
#include "certify/campaign/campaign_options.hpp"
#include "certify/campaign/code_content.hpp"
#include "certify/count/schedule_audit.hpp"
#include "certify/plan/pairs/pairwise.hpp"
#include "certify/plan/sizes.hpp"
#include "certify/report/html/evidence.hpp"
#include "certify/report/ratio.hpp"
#include "core/abi/attest_kernel.h"
#include "core/verdict.hpp"
#include "proptest/laws/law.hpp"
#include "proptest/values/generator.hpp"

/// The campaign behind `attest certify`: laws x (model shapes + generated cases) for one kernel.
namespace attest::certify {

/// One refused case, before and after shrinking.
struct Finding {
  std::string law;
  Verdict verdict = Verdict::violated;
  proptest::Case found, shrunk;
  std::string message;         // of the shrunk case
  int checks = 1;              // how often the case must be checked in one process until it fails
  std::uint64_t position = 0;  // in the plan
  Evidence evidence;           // suspected mistakes, where the errors lie
  std::string file;            // of the shrunk case's tensors, when they were saved
  std::string isolation{};     // worker::isolation_words of the kernel
  std::vector<proptest::Case> after{};  // that must be checked before it in the same process
  std::vector<std::string> also{};      // further laws that fail of the same cause
  std::set<std::string> outputs{};      // that its law refuses on the smallest case
  bool known = false;                   // listed by the caller (certify/history/known_failures.hpp)
  bool undecided = false;               // perhaps of a listed cause: a part of the campaign
};

/// Checks of claimed problems that the kernel refused in the same words.
struct Refusal {
  std::string message;  // "refused although claimed", and what it says
  std::uint64_t checks = 0;
  std::string example;  // the command that runs the first of them again
};

/// A check that failed on wrong results.
struct WrongCheck {
  proptest::Case c;
  std::string message;
};

struct LawCount {
  std::uint64_t passed = 0, vacuous = 0, unsupported = 0, improbable = 0, failed = 0;
  std::uint64_t not_claimed = 0;  // those of `unsupported` that ask for what is not claimed
  std::map<std::string, WrongCheck> wrong{};    // by output: the first beyond its bound
  std::optional<WrongCheck> wrong_otherwise{};  // the first that failed otherwise than by a bound
  std::uint64_t hidden = 0;  // those of `failed` whose results a fault kept from being judged
};

/// The worst error over the probabilistic bound seen for one output, in checks that failed too, and
/// how the worst of every passed check are distributed.
/// [certify/campaign/campaign_test "the worst error is that of the failure"]
struct WorstRatio {
  double ratio = 0;
  std::string problem;
  RatioHistogram histogram{};
};

struct CampaignResult {
  std::string kernel;
  std::string library;                    // content_of_code of the kernel
  std::optional<std::string> chosen_law;  // the only law run, if one was chosen
  Shapes shapes = Shapes::model;          // that were added to the generated cases
  std::optional<std::string> mask;        // that every case has, if one was given
  std::string mask_content;               // sha256_of_file of its file; empty without one
  Verdict verdict = Verdict::unsupported;
  std::uint64_t cases = 0, planned_cases = 0;  // with every check made, and those there were
  std::map<std::string, LawCount> laws;
  std::map<std::string, WorstRatio> worst;         // by output
  std::map<std::string, std::uint64_t> exercised;  // dtype or feature -> checks that counted
  std::map<std::string, std::map<std::string, std::uint64_t>> matrix;  // dtype -> feature -> checks
  std::map<std::string, std::uint64_t> not_claimed;  // missing feature -> cases it kept out
  std::vector<Refusal> refused;                      // claimed but refused by the kernel
  std::vector<NeededFile> needed;                    // libraries that its own is linked with
  std::vector<std::string> loaded;                   // files of code that its calls loaded
  Pairs claimed, met;  // pairwise coverage; `met` in a check against the reference that counted
  std::set<std::string> failing;  // what checks exercised that failed with results judged, or none
  Pairs failing_pairs;            // and met
  SizesByKind sizes;              // of problems whose check against the reference counted
  std::map<std::string, std::string> unjudged;  // own problems: why no reference law counted
  std::vector<Finding> findings;
  std::vector<std::string> gaps;                 // why passing proves less than what is claimed
  std::vector<std::string> gaps_beside;          // those that are no matter of its failures
  Shard shard;                                   // what of the campaign this is
  std::uint64_t checks = 0, planned_checks = 0;  // made, and those there were to make
  bool interrupted = false;
  std::string ended_by = "interrupted";          // or what else ended it early
  std::optional<ScheduleAudit> io, io_backward;  // of a kernel that names schedules
  double seconds = 0;

  std::uint64_t passed() const;
  std::uint64_t vacuous() const;
};

/// Checks one case. An improbable result is repeated with another seed: improbable twice is
/// violated, and the case is then the second one; otherwise the first result stands.
/// [certify/campaign/campaign_test]
proptest::LawResult check_repeating(const proptest::Law& law, const attest_kernel& kernel,
                                    proptest::Case& c);

/// Claimed dtypes and features that no counted check exercised, in the order of the ABI.
/// [certify/campaign/campaign_test]
std::vector<std::string> unexercised(const attest_description& description,
                                     const CampaignResult& result);

/// The claimed pairs that no check against the reference met with content.
Pairs unmet_pairs(const CampaignResult& result);

/// Tells whether a reference law found more cases vacuous than it counted: within such bounds wrong
/// results pass more often than not, and what they do refuse is chance.
/// [certify/campaign/campaign_test "so flat that every decoy passes"]
bool flat(const CampaignResult& result);

/// Laws that counted on no case although the kernel claims what they need.
/// [certify/campaign/campaign_test "gaps"]
std::vector<std::string> silent_laws(const CampaignResult& result);

/// Why a campaign without findings does not cover what the kernel claims; empty when it does. An
/// interrupted campaign and a refused problem are gaps; so is, unless only one law was chosen, a
/// claimed dtype, feature or pair of properties that no counted check exercised and a law that
/// counted on no case, but for a law that needs what the kernel does not claim. A shard is not
/// asked for the whole; a campaign on one mask for a case of each reference law, no more.
/// [certify/campaign/campaign_test "gaps"]
std::vector<std::string> gaps_of(const attest_description& description,
                                 const CampaignResult& result);

/// Returns the gaps of a campaign with findings that are not theirs: what was claimed and neither
/// passed nor failed with its results judged, or with none. A fault that leaves results keeps them
/// from being judged.  [certify/history/known_failures_test "a listed fault hides no results"]
std::vector<std::string> gaps_beside_failures(const attest_description& description,
                                              const CampaignResult& result);

/// Returns the result with failures counted as passes, but for those whose results were not judged.
CampaignResult counting_failures(CampaignResult result);

/// The outcome in a word: certified, incomplete (nothing failed, but there are gaps), law_holds
/// (passed, one law chosen), mask_holds (passed, every law on one mask alone), shard_passed, or the
/// verdict's name; vacuous too where a reference law found more cases vacuous than it counted.
/// [certify/campaign/campaign_test "gaps"]
std::string_view outcome(const CampaignResult& result);

/// Where a campaign writes what it finds, when it ends early and what it begins with; all may be
/// absent.
struct Surveillance {
  Interrupted interrupted;
  Journal* journal = nullptr;
  std::function<std::string()> ended_by{};               // what it was that interrupted
  std::function<void(const std::string& law)> failed{};  // called for each check that fails
  FailedChecks first{};                                  // whose batches run before the others
  ExpectedKinds expected{};                              // whose failures end no law
};

/// Runs the campaign. Deterministic for the options but for `jobs` and `seconds`, as long as the
/// kernel is, or is isolated. A law is dropped after its first finding, or after its first of a
/// kind that is not expected: then it may have a finding of each kind. An improbable result is
/// repeated with another seed and counts as violated when it repeats. When neither a law nor a
/// number of cases is chosen, further cases are generated for the claims, laws and pairs that no
/// case has met; not in a shard, for they follow from all shards. Checks that the journal knows are
/// not run again, and which run first changes no result. Throws InvalidProblem where the kernel's
/// file, or that of its mask, is written again meanwhile.  [certify/campaign/campaign_test,
/// certify/campaign/expected_failures_test, certify/campaign/sharing_test]
CampaignResult run_campaign(const attest_kernel& kernel, const CampaignOptions& options,
                            const Progress& progress, const Surveillance& surveillance = {});

/// Puts the I/O beside the laws: a violation there is one of the kernel, what could not be counted
/// is a gap.
/// [certify/count/schedule_audit_test "a violation of I/O"]
void attach(CampaignResult& result, std::optional<ScheduleAudit> io,
            std::optional<ScheduleAudit> io_backward = {});

/// Tells whether a kernel fails in nothing but what the caller listed: such a kernel is not
/// certified, and does not fail the run.  [certify/history/known_failures_test]
bool fails_as_known(const CampaignResult& result);

/// Returns what was refused although claimed, and problems of the caller's that were not judged:
/// gaps that no failure is the cause of.
std::vector<std::string> not_judged(const CampaignResult& result);

/// Exit code over all kernels: 0 certified (or the chosen law holds, or it fails as known), 1
/// violated, 3 nothing proven or incomplete, 4 crashed.  [certify/campaign/campaign_test]
int exit_code(const std::vector<CampaignResult>& results);

/// The command that runs one case again, `checks` times in one process; `isolation` as
/// worker::isolation_words has it.
std::string reproduce_line(const std::string& kernel, const std::string& law,
                           const proptest::Case& c, int checks = 1,
                           const std::string& isolation = "");

/// The command that shows a finding again, with the cases that must be checked before it.
std::string reproduce_line(const std::string& kernel, const Finding& finding);

}  // namespace attest::certify
