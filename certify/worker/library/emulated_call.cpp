#include "certify/worker/library/emulated_call.hpp"

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "certify/worker/process/transfer.hpp"
#include "gpu/runtime/emulated_device.hpp"

namespace attest::certify::worker {
namespace {

template <class T>
T* at_address(std::uint64_t address) {
  return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr): as the certifier's
}

// Where the call may say why it failed.
std::pair<char*, std::size_t> message_of(const Control& control) {
  const auto of = [&]<class Arguments>(const Arguments* arguments) {
    return std::pair{arguments->message, arguments->message_bytes};
  };
  switch (control.task) {
    case Task::forward:
      return of(at_address<const attest_forward_args>(control.arguments));
    case Task::backward:
      return of(at_address<const attest_backward_args>(control.arguments));
    case Task::loss_gradient:
      return of(at_address<const attest_loss_args>(control.arguments));
    case Task::describe:
    case Task::workspace:
      break;
  }
  return {nullptr, 0};
}

}  // namespace

void begin_emulated_call(const Control& control) {
  std::vector<gpu::runtime::CallBuffer> buffers;
  for (std::uint32_t k = 0; k < control.segment_count; ++k) {
    const Segment& segment = control.segments[k];
    if (segment.name[0] == '\0' || segment.data_bytes == 0) continue;
    buffers.push_back({segment.name, at_address<void>(segment.data), segment.data_bytes,
                       segment.access == Access::writable});
  }
  gpu::runtime::begin_emulated_call(buffers);
}

std::string end_emulated_call(Control& control) {
  using gpu::runtime::Outcome;
  const gpu::runtime::EmulatedOutcome came = gpu::runtime::end_emulated_call();
  if (came.outcome == Outcome::found) {
    const auto [message, bytes] = message_of(control);
    put_text(message, bytes, came.text);
    control.status = ATTEST_FAILED;
    return came.text;
  }
  if (came.outcome == Outcome::not_emulated) {
    put_text(control.text, sizeof control.text, came.text);
    control.not_emulated = 1;
  }
  return "";
}

void end_emulated_process(Control& control) {
  const std::string found = end_emulated_call(control);
  if (!found.empty()) std::fprintf(stderr, "%s\n", found.c_str());
}

}  // namespace attest::certify::worker
