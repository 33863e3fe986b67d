#include "certify/worker/diagnosis.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <cmath>
#include <cstring>

namespace attest::certify::worker {
namespace {

std::string seconds_text(double seconds) {
  std::string text = std::to_string(std::round(10 * seconds) / 10);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

std::string quoted(const std::string& words) { return words.empty() ? "" : ": " + words; }

Fault death_by_signal(const Process& process, const CallMemory& memory, int signal,
                      const std::string& when) {
  const Control& control = process.control();
  if (signal == SIGSEGV && control.signal == SIGSEGV && !process.out_of_memory()) {
    const Access how = control.fault_is_write != 0 ? Access::writable : Access::read_only;
    return memory.explain(control.fault_address, how, control.reserved_begin, control.reserved_end,
                          when);
  }
  if (process.out_of_memory()) {
    return {FaultKind::memory,
            "an allocation was refused at the memory limit and the kernel died "
            "of it " +
                when};
  }
  if (signal == SIGABRT) {
    return {FaultKind::abort, "abort() " + when + quoted(process.last_words())};
  }
  return {FaultKind::crash, "signal " + std::to_string(signal) + " (" + strsignal(signal) + ") " +
                                when + quoted(process.last_words())};
}

std::optional<Fault> disturbance(const Control& control, const std::string& when) {
  const std::string text = control.text;
  const auto has = [&](Disturbance bit) { return (control.disturbances & bit) != 0; };
  if (has(kOutOfMemory)) {
    return Fault{FaultKind::memory, "nearly all memory below the limit was allocated " + when};
  }
  if (has(kWroteBesideOnDevice)) return Fault{FaultKind::out_of_bounds, text + " " + when};
  if (has(kWroteInputOnDevice)) return Fault{FaultKind::input_written, text + " " + when};
  if (has(kClosedDescriptor)) {
    return Fault{FaultKind::closed_descriptor,
                 "descriptors that it did not open were closed " + when + ": " + text};
  }
  if (has(kForked)) return Fault{FaultKind::fork, "a process was started " + when};
  if (has(kFloatingPoint)) return Fault{FaultKind::floating_point, text + " " + when};
  if (has(kLocale)) return Fault{FaultKind::locale, text + " " + when};
  if (has(kDirectory)) return Fault{FaultKind::directory, text + " " + when};
  if (has(kEnvironment)) return Fault{FaultKind::environment, text + " " + when};
  if (has(kSignalHandler)) return Fault{FaultKind::signal_handler, text + " " + when};
  if (has(kPrinted)) return Fault{FaultKind::printed, text + " " + when};
  return std::nullopt;
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

std::optional<Fault> diagnose(const Process& process, Process::Ending ending,
                              const CallMemory& memory, double timeout_seconds) {
  const Control& control = process.control();
  const std::string when = std::string("in ") + word(control.task);
  if (ending == Process::Ending::timed_out) {
    if (process.out_of_memory()) {
      return Fault{FaultKind::memory, "memory up to the limit was allocated " + when +
                                          ", which did not return within " +
                                          seconds_text(timeout_seconds)};
    }
    return Fault{FaultKind::hang, std::string(word(control.task)) + " did not return within " +
                                      seconds_text(timeout_seconds)};
  }
  const std::optional<Fault> overrun = memory.overrun();
  if (ending == Process::Ending::finished) {
    if (overrun) return Fault{overrun->kind, overrun->detail + " " + when};
    return disturbance(control, when);
  }
  const bool returned = control.phase != Phase::calling;
  if (returned) {
    // Its socket may have been closed under it: what it saw is in the control.
    const std::optional<Fault> seen = disturbance(control, when);
    if (seen) return seen;
  }
  const std::string where = returned ? std::string("after ") + word(control.task) : when;
  if (WIFSIGNALED(process.wait_status())) {
    return death_by_signal(process, memory, WTERMSIG(process.wait_status()), where);
  }
  return Fault{FaultKind::exit, "the process was ended with status " +
                                    std::to_string(WEXITSTATUS(process.wait_status())) + " " +
                                    where};
}

}  // namespace attest::certify::worker
