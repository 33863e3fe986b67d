#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/verdict.hpp"

namespace attest::certify::worker {

/// Misbehaviour of a kernel towards its process or memory that is not its own.
///
///   crash                killed by a signal
///   abort                called abort(), as a failed assertion or an uncaught exception does
///   exit                 ended the process
///   hang                 did not return in time
///   memory               came to the end of the memory it may allocate
///   out_of_bounds        touched memory before or after a buffer
///   input_written        wrote into an input, even if it put the old value back
///   stale_memory         touched memory of an earlier call
///   left_thread          left a thread behind that touched memory of a call that had returned, or
///                        threads without end
///   fork                 started a process
///   closed_descriptor    closed a descriptor that it did not open
///   left_descriptor      left descriptors open without end
///   floating_point       left another rounding mode or floating-point environment
///   locale, directory    changed the process's locale or working directory
///   environment          changed the process's environment variables
///   signal_handler       changed what the process does about a signal
///   signal_mask          changed which signals are blocked
///   timer                left a timer running (alarm, setitimer)
///   resource_limit       changed a limit of the process (setrlimit)
///   umask                changed the mask of file modes
///   scheduling           changed nice value, scheduling policy or allowed processors
///   parent_signal        sent a signal to the certifier
///   printed              wrote to the standard output
///   exception            let a C++ exception out of a call
///   failed               returned ATTEST_FAILED for what it claims
///   workspace_size       asked for an impossible amount of workspace
enum class FaultKind : std::uint8_t {
  crash,
  abort,
  exit,
  hang,
  memory,
  out_of_bounds,
  input_written,
  stale_memory,
  left_thread,
  fork,
  closed_descriptor,
  left_descriptor,
  floating_point,
  locale,
  directory,
  environment,
  signal_handler,
  signal_mask,
  timer,
  resource_limit,
  umask,
  scheduling,
  parent_signal,
  printed,
  exception,
  failed,
  workspace_size
};

std::string_view name(FaultKind kind);
const std::vector<FaultKind>& all_fault_kinds();

/// `crashed` where the call did not return (crash, abort, exit, hang, memory, exception), else
/// `violated`.
Verdict verdict_of(FaultKind kind);

/// Tells whether a call with the fault returned results, which were not judged.
bool leaves_results(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::crash;
  std::string detail;

  /// "hang: forward did not return within 1 s".
  std::string text() const { return std::string(name(kind)) + ": " + detail; }
};

/// The kind that a message made by Fault::text begins with.
std::optional<FaultKind> kind_in(std::string_view message);

/// Returns the kind of fault in a finding's message, which may say first after which other checks
/// it occurs ("state: …: crash: …").  [certify/history/known_failures_test "state"]
std::optional<FaultKind> kind_in_finding(std::string_view message);

}  // namespace attest::certify::worker
