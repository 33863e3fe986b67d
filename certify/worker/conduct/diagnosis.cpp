#include "certify/worker/conduct/diagnosis.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace attest::certify::worker {
namespace {

std::string seconds_text(double seconds) {
  constexpr double kHundredths = 100;
  return fmt::format("{:g} s", std::round(kHundredths * seconds) / kHundredths);
}

// "did not return within 1 s (why)".
std::string no_return(const CallLimit& limit) {
  return "did not return within " + seconds_text(limit.seconds) +
         (limit.why.empty() ? "" : " (" + limit.why + ")");
}

Fault fault_at_address(const Process& process, const CallMemory& memory, const std::string& when) {
  const Control& control = process.control();
  const std::uint64_t address = control.fault_address;
  const Access how = control.fault_is_write != 0 ? Access::writable : Access::read_only;
  const bool of_a_call = address >= control.reserved_begin && address < control.reserved_end;
  const bool in_other_thread = control.fault_in_other_thread != 0;
  if (of_a_call && in_other_thread && control.fault_phase != Phase::calling) {
    return {FaultKind::left_thread, std::string("a thread that was left running ") +
                                        (how == Access::writable ? "wrote" : "read") +
                                        " memory of a call that had returned"};
  }
  return memory.explain(address, how, control.reserved_begin, control.reserved_end,
                        of_a_call && in_other_thread ? when + " by another thread" : when);
}

Fault death_by_signal(const Process& process, const CallMemory& memory, int signal,
                      const std::string& when) {
  if (process.out_of_memory()) {
    return {FaultKind::memory,
            "an allocation was refused at the memory limit and the kernel died of it " + when};
  }
  if (signal == SIGSEGV && process.control().signal == SIGSEGV) {
    return fault_at_address(process, memory, when);
  }
  if (signal == SIGABRT) {
    return {FaultKind::abort, "abort() " + when};
  }
  return {FaultKind::crash,
          "signal " + std::to_string(signal) + " (" + strsignal(signal) + ") " + when};
}

Fault death_by_exit(const Process& process, int status, const std::string& when) {
  const std::string ended =
      "the process was ended with status " + std::to_string(status) + " " + when;
  if (!process.out_of_memory()) return {FaultKind::exit, ended};
  return {FaultKind::memory, "an allocation was refused at the memory limit and " + ended};
}

std::optional<Fault> disturbance(const Control& control, const std::string& when) {
  if (control.disturbed == 0) return std::nullopt;
  return Fault{control.disturbance, std::string(control.text) + " " + when};
}

}  // namespace

const char* word(Task task) {
  switch (task) {
    case Task::describe:
      return "description";
    case Task::workspace:
      return "workspace_bytes";
    case Task::forward:
      return "forward";
    case Task::backward:
      return "backward";
    case Task::loss_gradient:
      break;
  }
  return "loss_gradient";
}

CallLimit limit_after_hang(double whole_seconds, double slowest_seconds) {
  constexpr double kAtLeast = 1, kSlack = 10;  // a busy machine may take so many times as long
  const double by_slowest = kSlack * slowest_seconds;
  const double seconds = std::max(kAtLeast, by_slowest);
  if (seconds >= whole_seconds) return {whole_seconds, ""};
  return {seconds, fmt::format("{}the limit after a call that did not return within {}",
                               by_slowest > kAtLeast ? "ten times its slowest call, " : "",
                               seconds_text(whole_seconds))};
}

std::optional<Fault> diagnose(const Process& process, Process::Ending ending,
                              const Transfer& transfer, const CallLimit& limit) {
  const Control& control = process.control();
  const std::string when = std::string("in ") + word(control.task);
  if (ending == Process::Ending::timed_out) {
    if (process.out_of_memory()) {
      return Fault{FaultKind::memory,
                   "memory up to the limit was allocated " + when + ", which " + no_return(limit)};
    }
    return Fault{FaultKind::hang, std::string(word(control.task)) + " " + no_return(limit)};
  }
  if (ending == Process::Ending::finished) {
    if (const auto overrun = transfer.memory().overrun()) {
      return Fault{overrun->kind, overrun->detail + " " + when};
    }
    if (const auto input = transfer.changed_input()) {
      return Fault{FaultKind::input_written, *input + " holds other bytes than before, written " +
                                                 when + " by another way than its address"};
    }
    if (const auto signal = process.sent_signal()) {
      return Fault{FaultKind::parent_signal, "signal " + std::to_string(*signal) + " (" +
                                                 strsignal(*signal) +
                                                 ") was sent to the certifier " + when};
    }
    return disturbance(control, when);
  }
  const bool returned = control.phase != Phase::calling;
  if (returned) {
    // Its socket may have been closed under it: what it saw is in the control.
    std::optional<Fault> seen = disturbance(control, when);
    if (seen) return seen;
  }
  const std::string where = returned ? std::string("after ") + word(control.task) : when;
  if (WIFSIGNALED(process.wait_status())) {
    return death_by_signal(process, transfer.memory(), WTERMSIG(process.wait_status()), where);
  }
  return death_by_exit(process, WEXITSTATUS(process.wait_status()), where);
}

}  // namespace attest::certify::worker
