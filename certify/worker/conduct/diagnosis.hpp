#pragma once

#include <optional>
#include <string>

#include "certify/worker/process/process.hpp"
#include "certify/worker/process/transfer.hpp"

namespace attest::certify::worker {

/// The word for a task in messages: the function of attest_kernel.
const char* word(Task task);

/// How long a call may take.
struct CallLimit {
  double seconds = 0;
  std::string why;  // in messages, where it is not the whole limit; else ""
};

/// Returns the limit of a kernel's calls once one has hung for the whole limit: a second, or ten
/// times the slowest call that returned where that is longer. Other cases need not wait as long to
/// say so again.  [certify/worker/isolation_test "the limit after a hang"]
CallLimit limit_after_hang(double whole_seconds, double slowest_seconds);

/// Returns what went wrong in a call that ended as `ending`, the gravest first; nothing when
/// nothing did.
/// [certify/worker/isolation_test "every misbehaviour has its own finding"]
std::optional<Fault> diagnose(const Process& process, Process::Ending ending,
                              const Transfer& transfer, const CallLimit& limit);

}  // namespace attest::certify::worker
