#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "certify/campaign/journal.hpp"
#include "certify/plan/plan.hpp"
#include "certify/worker/conduct/fault.hpp"

namespace attest::certify {

/// Called after every check with done, total; and asked before each whether to stop.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;
using Interrupted = std::function<bool()>;

/// Checks of one kernel, each a law and a position in the plan.
using FailedChecks = std::set<std::pair<std::string, std::uint64_t>>;

/// Kinds of failure that are listed for a kernel: of faults, and nothing for wrong results.
using ExpectedKinds = std::set<std::optional<worker::FaultKind>>;

/// The campaign of one kernel while it runs.
struct Run {
  const attest_kernel& kernel;
  unsigned jobs;
  Shard shard;
  Journal& journal;
  Progress progress;
  Interrupted interrupted;
  std::uint64_t done = 0, total = 0;                                     // checks
  std::map<std::uint64_t, std::vector<const proptest::Law*>> planned{};  // by position
  std::vector<Batch> batches{};                                          // of this shard
  FailedChecks first{};                                  // whose batches run before the others
  std::function<void(const std::string& law)> failed{};  // called for each check that fails
  ExpectedKinds expected{};                              // whose failures end no law
};

/// Tells whether a law ends with this check: it fails, and not by a kind that is listed.
/// [certify/campaign/expected_failures_test]
bool ends_law(const Run& run, Verdict verdict, const std::string& message);

/// Adds what a check or shrinking found to the journal; throws InvalidProblem instead where the
/// kernel's file was written again, for it may be of that file.
/// [certify/worker/library/library_test "no campaign takes"]
void note(Run& run, const CheckName& name, const CheckRecord& record);
void note(Run& run, const CheckName& name, const ShrunkRecord& record);

/// Runs `count` tasks on run.jobs threads in any order; the first exception ends the others and is
/// thrown again.
void run_parallel(unsigned jobs, std::size_t count, const std::function<void(std::size_t)>& task);

/// Runs what the journal does not have yet of the batches of run.shard. A law is dropped after the
/// first case, in the order of the plan, that ends it: whether later ones ran depends on `jobs`,
/// and no one may look at them. Batches with a check of run.first run first, then those of
/// its laws.  [certify/campaign/sharing_test "jobs", certify/cli/tests/pipelines_test]
void run_batches(Run& run, const std::vector<PlannedCase>& plan, const std::vector<Batch>& batches);

}  // namespace attest::certify
