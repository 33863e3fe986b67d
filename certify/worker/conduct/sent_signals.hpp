#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>

/// Signals that a kernel sends to the certifier. They must not pass for those of a person.
namespace attest::certify::worker {

/// Tells whether a worker of this process, or a process of its group, sent the signal, and notes it
/// if so. For handlers of signals (SA_SIGINFO), safe there.
/// [certify/worker/aftermath_test "a signal to the certifier"]
bool sent_by_worker(int signal, const siginfo_t& info);

/// The signal noted of a worker since the last call for it; a signal still on its way to another
/// thread of this process is taken here.
std::optional<int> take_signal_of(pid_t worker);

}  // namespace attest::certify::worker
