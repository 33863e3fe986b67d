#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "certify/campaign/campaign.hpp"

namespace attest::certify {

/// Finding that is expected: a law that a kernel is known to fail, and the fault by which it does.
struct KnownFailure {
  std::string kernel, law;
  std::string kind;   // crash, hang, …; empty: wrong results
  std::string where;  // FILE:LINE
};

/// Outcome of an expected finding: it occurs, occurs no longer, or was not looked for to the end,
/// as in a shard, an interrupted campaign, a campaign without the kernel or the law, and where the
/// law fails by another fault.
enum class Expected : std::uint8_t { occurs, gone, not_looked_for };

/// "occurs", "gone" or "not_looked_for".
std::string_view name(Expected expected);

/// A known failure and what became of it.
struct KnownOutcome {
  KnownFailure failure;
  Expected expected = Expected::not_looked_for;
  std::string part_of{};  // LAW or LAW FAULT of a finding that it occurs in and that is not listed
};

/// Reads lines `KERNEL LAW` and `KERNEL LAW FAULT`; # begins a comment where a line begins and
/// after a blank, empty lines are left out. Throws InvalidProblem with FILE:LINE for an unknown law
/// and a line that is none of these. [certify/history/known_failures_test]
std::vector<KnownFailure> read_known_failures(const std::string& path);

/// Tells whether the entry is of this kernel, in whatever folder.
bool is_of_kernel(const KnownFailure& known, const std::string& kernel);

/// Tells whether an entry is of the kernel, in whatever folder.
bool has_entry(const std::vector<KnownFailure>& known, const std::string& kernel);

/// Throws InvalidProblem with FILE:LINE for an entry that excuses another finding than it seems to:
/// one of a library without a kernel's name, and one of two kernels of the run, whose libraries
/// have the same name. [certify/history/known_failures_test "definite"]
void require_definite(const std::vector<KnownFailure>& known,
                      const std::vector<std::string>& kernels);

/// Returns the kinds of failure that the entries of a kernel have: a campaign goes on after those.
/// An entry is of one law; the laws that fail of its cause go on with it.
/// [certify/history/known_failures_test "kinds"]
ExpectedKinds expected_kinds(const std::vector<KnownFailure>& known, const std::string& kernel);

/// Marks the findings that are listed, with the laws that they break, and tells of each entry what
/// became of it. A finding is listed where its kernel (in whatever folder), its own law and its
/// fault are; and each law that fails with it, unless that fails in no other outputs than the
/// finding's smallest case. A law against the reference that meets the same fault is listed by
/// itself. Where one is not, a hint of the finding has the lines that it needs. Wrong results that
/// are not listed, of a kernel of which others are, are undecided where the campaign ended early,
/// and in a shard: the laws that fail of one cause were not folded.
/// [certify/history/known_failures_test]
std::vector<KnownOutcome> mark_known(const std::vector<KnownFailure>& known,
                                     std::vector<CampaignResult>& results);

/// As the certificate has them: kernel, law, kind, outcome, part_of.
nlohmann::json known_json(const std::vector<KnownOutcome>& outcomes);

}  // namespace attest::certify
