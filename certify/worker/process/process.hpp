#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "certify/worker/process/arena.hpp"
#include "certify/worker/process/descriptor.hpp"
#include "proptest/judge/buffer.hpp"

namespace attest::certify::worker {

/// How calls are isolated.
struct Limits {
  std::string program;  // the attest program; empty: this program's own file
  double timeout_seconds = 30;
  std::uint64_t memory_limit_bytes = std::uint64_t{4} << 30;  // private memory; 0: no limit
};

/// A program that serves kernels (worker::serve), and what it loads.
struct Source {
  std::string program;  // its file; empty: that of the limits
  std::vector<std::string> words;
  std::vector<std::string> again;  // further words where the kernels have described themselves
  std::string subject;             // in messages: "library './libmine.so'"
  std::string loading;             // in messages: what runs before the first call
  std::string options;  // of `attest check` that call it in the same way, each after a blank
  bool forks = false;   // it calls fork_when_asked
};

/// A worker process. It is started by posix_spawn, never by a bare fork of this process, with
/// nothing but two descriptors of ours, in a process group of its own that is killed as a whole.
class Process {
 public:
  /// Starts and loads; where the source forks it is one to fork from, if it can be. With an
  /// `origin` it is forked from that one. Throws InvalidProblem when the source cannot be loaded:
  /// with the worker's reason, or because it died or hung meanwhile; and when the origin does not
  /// fork.
  Process(const Source& source, const Limits& limits, Process* origin = nullptr);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  Arena& arena() { return arena_; }
  const Control& control() const { return arena_.control(); }

  /// Tells whether processes can be forked from it, in place of calls.
  bool forks() const { return control().forks == Forks::served; }

  /// Tells whether it has not been seen to end.
  bool alive();

  enum class Ending { finished, died, timed_out };

  /// Carries out the task that the control names. After any ending but `finished` the process is
  /// gone.
  Ending run(double timeout_seconds);

  /// The status that waiting for a dead worker gave.
  int wait_status() const { return wait_status_; }

  /// The signal that it sent to this process during the last run, where handlers ask
  /// sent_by_worker.
  std::optional<int> sent_signal() const { return sent_signal_; }

  /// Private bytes when a worker that timed out was killed.
  std::uint64_t last_data_bytes() const { return last_data_bytes_; }

  /// Tells whether the process ran out of memory that it may allocate.
  bool out_of_memory() const;

  /// The last lines that the last run wrote to the standard error, as `printable` spells them, with
  /// " | " between them; "" when none.
  std::string last_words() const;

  /// The first address the next call may use, moved on by every call.
  std::uint64_t next_address = 0;

  /// Has the calls of a run within a proptest::SameMemory begin where those of its first run did.
  /// [certify/worker/isolation_test "the same memory"]
  void keep_memory();

 private:
  void begin(const Source& source, const Limits& limits, double load_seconds, Process* origin);
  void spawn(const Source& source, const Limits& limits, const Given& given);
  pid_t fork(const Given& given, double seconds);
  Ending wait(double timeout_seconds);
  void kill();

  Arena arena_;
  std::uint64_t memory_limit_bytes_;
  Descriptor socket_, output_, errors_, process_descriptor_;
  std::mutex forking_;
  pid_t pid_ = -1;
  int wait_status_ = 0;
  std::optional<int> sent_signal_;
  proptest::SameMemory::Run kept_;
  std::uint64_t kept_address_ = 0;  // where its first run began
  std::uint64_t last_data_bytes_ = 0;
  off_t errors_begin_ = 0;  // of the last run, in the file of the standard error
};

}  // namespace attest::certify::worker
