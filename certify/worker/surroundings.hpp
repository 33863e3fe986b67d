#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace attest::certify::worker {

/// What a kernel must leave as it found it: floating-point environment, locale, working directory,
/// environment variables, signal handlers, descriptors, children, standard output, memory below the
/// limit. Taken once in the worker; a process in which something changed is not used again.
/// [certify/worker/isolation_test "every misbehaviour has its own finding"]
class Surroundings {
  // What the process does about a signal: as bits, for they are only compared.
  struct SignalAction {
    std::uint64_t handler = 0;
    int flags = 0;
    bool operator==(const SignalAction&) const = default;
  };

 public:
  /// Of this process, whose data segment must not grow beyond the limit.
  explicit Surroundings(std::uint64_t data_limit_bytes);

  /// Takes variables and handlers of signals as they are now: a library may set its own while it
  /// loads, a call may not.
  void loaded();

  struct Change {
    std::uint32_t bits = 0;  // of Disturbance
    std::string text;        // what the first of them changed, where there is more to say
  };

  /// What differs now. Never returns in a process forked from this one: that one ends here.
  Change changes() const;

 private:
  static std::vector<SignalAction> signal_actions();

  std::uint64_t data_limit_bytes_;
  pid_t pid_;
  int rounding_;
  std::uint64_t control_word_;
  std::string locale_, directory_;
  std::vector<std::string> environment_;
  std::vector<SignalAction> actions_;
};

/// Bytes of private writable memory of this process, what RLIMIT_DATA counts. Safe in a signal
/// handler. 0 when unknown.
std::uint64_t data_bytes();

/// The same of another process.
std::uint64_t data_bytes_of(pid_t process);

/// Whether so many bytes are so near to the limit that an allocation was probably refused: within
/// a sixteenth of it.
inline bool near_limit(std::uint64_t bytes, std::uint64_t limit) {
  return bytes >= limit - limit / 16;
}

}  // namespace attest::certify::worker
