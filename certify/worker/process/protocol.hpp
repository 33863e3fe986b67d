#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "certify/worker/conduct/fault.hpp"
#include "core/abi/attest_kernel.h"

/// Messages between the certifier and its worker process. The two are of one version, so structs
/// travel as they are. One byte through the socket wakes the other side; everything else lies in
/// shared memory, where a call that dies leaves what is known about its end.
namespace attest::certify::worker {

/// Descriptors of the worker besides 0 (nothing), 1 and 2 (files whose text is looked at). The
/// arena comes twice: pages mapped from a descriptor that only reads cannot be made writable
/// (mprotect).
inline constexpr int kSocket = 3, kArena = 4, kReadOnlyArena = 5;
inline constexpr int kLastDescriptor = kReadOnlyArena;

/// The descriptors of a worker from 1 on.
using Given = std::array<int, kLastDescriptor>;

/// The worker dies by itself so long after a call's time is up, should nobody be left to end it.
inline constexpr int kGraceSeconds = 10;

enum class Task : std::uint32_t { describe, workspace, forward, backward, loss_gradient };

/// Where the worker is; what it was doing when it died.
enum class Phase : std::uint32_t { starting, loading, idle, calling, inspecting };

enum class Access : std::uint32_t { read_only, writable };

/// Pages of the arena that a call sees at an address, and the buffer in them.
struct Segment {
  std::uint64_t address = 0, offset = 0, bytes = 0;
  Access access = Access::read_only;
  std::uint32_t populate = 0;  // 1: map every page at once
  std::uint64_t data = 0, data_bytes = 0;
  char name[40] = "";  // "" for memory that is the host's on a device too
};

inline constexpr std::size_t kMostSegments = 24;

/// A description without its pointers.
struct Description {
  attest_description fields{};
  char name[256] = "", summary[1024] = "", schedule[512] = "", schedule_backward[512] = "";
  char file[1024] = "";  // of the kernel's code; "" where nobody said
  std::uint32_t has_schedule = 0, has_schedule_backward = 0, has_workspace = 0, has_limits = 0;
  attest_limits limits{};
};

/// The version, and the sizes of what travels.
struct Layout {
  char version[48] = "";
  std::uint64_t control = 0, call = 0;
  bool operator==(const Layout&) const = default;
};

/// Returns that of this program, which must be the other's too.
/// [certify/worker/program_test "a program of another version"]
Layout layout_of_messages();

/// Tells if others are forked from a process. A program that does not know of it leaves it asked.
enum class Forks : std::uint32_t { none, asked, served };

struct Control {
  // From the certifier.
  Layout layout;  // first, so that every version finds it
  Task task = Task::describe;
  std::uint32_t index = 0;      // of the kernel in its library
  std::uint32_t direction = 0;  // of a workspace question
  double timeout_seconds = 0;
  std::uint64_t memory_limit_bytes = 0;
  Forks forks = Forks::none;    // of others from this process
  std::uint64_t arguments = 0;  // address of the task's argument struct
  std::uint64_t range_begin = 0, range_end = 0;
  std::uint32_t segment_count = 0;
  Segment segments[kMostSegments];
  // From the worker.
  std::atomic<Phase> phase{Phase::starting};
  std::uint64_t reserved_begin = 0, reserved_end = 0;  // addresses calls may use
  std::uint32_t kernel_count = 0;
  std::int32_t forked = 0;  // the process that was forked last, or minus the error
  Description description;
  std::int32_t status = 0;
  std::uint64_t workspace_bytes = 0;
  std::uint32_t disturbed = 0;     // 1: the call left its surroundings changed
  std::uint32_t not_emulated = 0;  // 1: the call asked for what an emulated device has not
  FaultKind disturbance = FaultKind::crash;
  char text[1024] = "";          // why loading failed, what the disturbance is or is not emulated
  char needed[16384] = "";       // files that were loaded with the kernels, each with a line's end
  std::uint32_t needs_more = 0;  // 1: not all fit
  char loaded[4096] = "";        // those that calls have loaded
  // From its handlers; the process ends after any of them.
  std::atomic<std::int32_t> signal{0};  // of a fault; the process ends of it
  Phase fault_phase = Phase::starting;
  std::uint64_t fault_address = 0;
  std::uint32_t fault_is_write = 0, fault_in_other_thread = 0, out_of_memory = 0;
};

/// Bytes at the begin of the arena that hold the Control.
inline constexpr std::size_t kControlBytes = std::size_t{1} << 16;
static_assert(sizeof(Control) <= kControlBytes);

/// The worker's view of its Control; nullptr where no certifier started this process.
Control* map_control();

/// The exit status of a worker whose structs are not those of the certifier.
inline constexpr int kOtherVersion = 3;

/// Arguments of one call, addresses as the worker sees them.
struct CallBlock {
  static constexpr std::size_t kMostTensors = 14, kMostAxes = 4;
  attest_problem problem{};
  attest_block_mask blocks{};
  attest_csr_mask csr{};
  attest_nm_mask nm{};
  attest_paged_kv paged_kv{};
  attest_head_mask head_mask{};
  attest_window_ends window_ends{};
  union Arguments {
    attest_forward_args forward;
    attest_backward_args backward;
    attest_loss_args loss;
  } arguments{};
  attest_tensor tensors[kMostTensors]{};
  std::int64_t shapes[kMostTensors][kMostAxes]{}, strides[kMostTensors][kMostAxes]{};
};

}  // namespace attest::certify::worker
