#include "certify/worker/conduct/fault.hpp"

namespace attest::certify::worker {

std::string_view name(FaultKind kind) {
  switch (kind) {
    case FaultKind::crash:
      return "crash";
    case FaultKind::abort:
      return "abort";
    case FaultKind::exit:
      return "exit";
    case FaultKind::hang:
      return "hang";
    case FaultKind::memory:
      return "memory";
    case FaultKind::out_of_bounds:
      return "out_of_bounds";
    case FaultKind::input_written:
      return "input_written";
    case FaultKind::stale_memory:
      return "stale_memory";
    case FaultKind::left_thread:
      return "left_thread";
    case FaultKind::fork:
      return "fork";
    case FaultKind::closed_descriptor:
      return "closed_descriptor";
    case FaultKind::left_descriptor:
      return "left_descriptor";
    case FaultKind::floating_point:
      return "floating_point";
    case FaultKind::locale:
      return "locale";
    case FaultKind::directory:
      return "directory";
    case FaultKind::environment:
      return "environment";
    case FaultKind::signal_handler:
      return "signal_handler";
    case FaultKind::signal_mask:
      return "signal_mask";
    case FaultKind::timer:
      return "timer";
    case FaultKind::resource_limit:
      return "resource_limit";
    case FaultKind::umask:
      return "umask";
    case FaultKind::scheduling:
      return "scheduling";
    case FaultKind::parent_signal:
      return "parent_signal";
    case FaultKind::printed:
      return "printed";
    case FaultKind::exception:
      return "exception";
    case FaultKind::failed:
      return "failed";
    case FaultKind::workspace_size:
      break;
  }
  return "workspace_size";
}

const std::vector<FaultKind>& all_fault_kinds() {
  static const std::vector<FaultKind> kinds = [] {
    std::vector<FaultKind> all;
    for (auto k = 0; k <= static_cast<int>(FaultKind::workspace_size); ++k) {
      all.push_back(static_cast<FaultKind>(k));
    }
    return all;
  }();
  return kinds;
}

bool leaves_results(FaultKind kind) {
  return verdict_of(kind) == Verdict::violated && kind != FaultKind::failed &&
         kind != FaultKind::workspace_size;
}

Verdict verdict_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::crash:
    case FaultKind::abort:
    case FaultKind::exit:
    case FaultKind::hang:
    case FaultKind::memory:
    case FaultKind::exception:
      return Verdict::crashed;
    default:
      return Verdict::violated;
  }
}

std::optional<FaultKind> kind_in(std::string_view message) {
  const std::string_view word = message.substr(0, message.find(": "));
  for (const FaultKind kind : all_fault_kinds()) {
    if (word == name(kind)) return kind;
  }
  return std::nullopt;
}

std::optional<FaultKind> kind_in_finding(std::string_view message) {
  constexpr std::string_view kEnd = ": ";
  for (const std::string_view circumstance : {"state: ", "race: ", "threads: ", "chance: "}) {
    if (!message.starts_with(circumstance)) continue;
    const std::size_t end = message.find(kEnd, circumstance.size());
    if (end != std::string_view::npos) message.remove_prefix(end + kEnd.size());
    break;
  }
  return kind_in(message);
}

}  // namespace attest::certify::worker
