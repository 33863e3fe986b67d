#pragma once

#include <optional>

#include "certify/worker/process/process.hpp"
#include "certify/worker/process/transfer.hpp"

namespace attest::certify::worker {

/// The word for a task in messages: the function of attest_kernel.
const char* word(Task task);

/// Returns what went wrong in a call that ended as `ending`, the gravest first; nothing when
/// nothing did.
/// [certify/worker/isolation_test "every misbehaviour has its own finding"]
std::optional<Fault> diagnose(const Process& process, Process::Ending ending,
                              const Transfer& transfer, double timeout_seconds);

}  // namespace attest::certify::worker
