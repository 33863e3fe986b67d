#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/types.h>

#include <string>

#include "certify/worker/process/descriptor.hpp"
#include "certify/worker/process/protocol.hpp"

/// Parts of starting a process that a kernel may end.
namespace attest::certify::worker {

/// Throws InvalidProblem, "worker: cannot " with what and why, for an errno that is not 0.
void require(int error, const std::string& what);

/// Signals that ask a program to end: a job is over, a key was pressed, a terminal is gone. Whoever
/// sends them to all processes of a job means the certifier, which ends its workers itself.
inline constexpr int kRequests[] = {SIGINT, SIGTERM, SIGHUP};

/// kRequests as a set.
sigset_t request_set();

/// Attributes and actions of posix_spawn: a process group of its own, no signal blocked or ignored.
class SpawnAttributes {
 public:
  SpawnAttributes();
  ~SpawnAttributes();
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;

  /// The process begins with kRequests blocked, until it has handlers for them.
  void hold_requests();

  posix_spawnattr_t attributes{};
  posix_spawn_file_actions_t actions{};
};

/// Sends one byte and the descriptors; tells whether the other end took them.
bool send_descriptors(const Descriptor& socket, const Given& given);

/// A descriptor that is readable once the process has ended.
int watch_process(pid_t process);

/// Kills the process and its group; the status that waiting for it gave.
int kill_group(pid_t process);

off_t size_of(const Descriptor& file);

/// The last lines of a file from a place on, as `printable` spells them, with " | " between them;
/// "" when none.
std::string last_lines(const Descriptor& file, off_t from);

}  // namespace attest::certify::worker
