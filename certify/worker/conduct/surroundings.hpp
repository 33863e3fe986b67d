#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "certify/worker/conduct/fault.hpp"
#include "certify/worker/conduct/settings.hpp"
#include "certify/worker/process/children.hpp"

namespace attest::certify::worker {

/// Surroundings that a kernel must leave as it found them: floating-point environment, locale,
/// working directory, environment variables, signal handlers, settings, descriptors, children,
/// standard output, memory below the limit. Compared is what a user could observe. Taken once in
/// the worker; a process in which something changed is not used again.
/// [certify/worker/isolation_test "every misbehaviour has its own finding"]
/// [certify/worker/runtime_test "what a runtime does"]
class Surroundings {
  // Action of the process on a signal: as bits, for they are only compared.
  struct SignalAction {
    std::uint64_t handler = 0;
    int flags = 0;
    bool operator==(const SignalAction&) const = default;
  };

 public:
  /// Takes the surroundings of this process, whose data segment must not grow beyond the limit.
  explicit Surroundings(std::uint64_t data_limit_bytes);

  /// Takes locale, directory, variables, handlers of signals, settings, children, descriptors and
  /// the length of the standard output as they are now: a library may set its own while it loads, a
  /// call may not. The floating-point environment stays that of before, for it is the whole
  /// process's.  [certify/worker/runtime_test "while it loads"]
  void loaded();

  /// Returns the descriptors of the certifier's that a library closed or replaced while it loaded:
  /// no task reaches this process without them. "" when none.
  std::string lost() const;

  /// Returns what a call changed, the gravest; to be asked after every call. `may_change` are the
  /// bits of attest_description.may_change: rules that do not apply. Never returns in a process
  /// forked from this one: that one ends here.
  std::optional<Fault> change(std::uint32_t may_change);

  /// How many calls of a process may each leave more threads alive, or more descriptors open, than
  /// any call before it. A pool of threads grows until it is as large as it is to be, a leak of
  /// threads at every call; so do descriptors.
  /// [certify/worker/aftermath_test "threads without end", "descriptors without end"]
  static int most_growths();

 private:
  static std::vector<SignalAction> signal_actions();

  // A descriptor's file as the system numbers it; nothing where the descriptor is closed.
  struct File {
    dev_t device = 0;
    ino_t number = 0;
    bool operator==(const File&) const = default;
  };
  using Files = std::vector<std::optional<File>>;  // of the worker's descriptors, from 0 on
  static Files files();

  bool threads_without_end();
  bool descriptors_without_end();
  std::optional<Fault> changed_signal() const;
  std::string closed_descriptors() const;
  std::string printed_text() const;

  std::uint64_t data_limit_bytes_;
  pid_t pid_;
  int rounding_;
  std::uint64_t control_word_, loaded_control_word_ = 0;
  std::string locale_, directory_;
  std::vector<std::string> environment_;
  std::vector<SignalAction> actions_;
  Settings settings_;
  Children children_;
  Files files_;        // as they were given; nothing where loading closed or replaced them
  off_t printed_ = 0;  // bytes of the standard output before the first call
  std::uint64_t most_threads_ = 0;
  int growths_ = 0;          // of threads
  int next_descriptor_ = 0;  // the greatest number that the next one has had
  int descriptor_growths_ = 0;
};

/// Threads of this process; 0 when unknown.
std::uint64_t thread_count();

/// Bytes of private writable memory of this process, what RLIMIT_DATA counts. Safe in a signal
/// handler. 0 when unknown.
std::uint64_t data_bytes();

/// The same of another process.
std::uint64_t data_bytes_of(pid_t process);

/// Tells whether so many bytes are so near to the limit that an allocation was probably refused:
/// within a sixteenth of it.
inline bool near_limit(std::uint64_t bytes, std::uint64_t limit) {
  return bytes >= limit - limit / 16;
}

}  // namespace attest::certify::worker
