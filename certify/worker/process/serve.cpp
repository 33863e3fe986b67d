#include "certify/worker/process/serve.hpp"

#include <cxxabi.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <typeinfo>

#include "certify/printable.hpp"
#include "certify/worker/conduct/surroundings.hpp"
#include "certify/worker/library/emulated_call.hpp"
#include "certify/worker/library/loaded_files.hpp"
#include "certify/worker/process/protocol.hpp"
#include "certify/worker/process/sanitizers.hpp"
#include "certify/worker/process/spawn.hpp"
#include "certify/worker/process/transfer.hpp"
#include "core/error.hpp"
#include "gpu/register.hpp"

namespace attest::certify::worker {
namespace {

constexpr int kFatalSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

Control* control = nullptr;  // handlers need them
std::string file_of_code;
std::uint64_t data_limit_bytes = 0;
pid_t server = 0;  // this process, and the thread that carries out tasks

// A library that does not get its memory may end the process in its own way, as OpenMP does.
void note_refused_memory() {
  control->out_of_memory =
      errno == ENOMEM || (data_limit_bytes > 0 && near_limit(data_bytes(), data_limit_bytes));
}

void note_exit() {
  if (getpid() != server) return;
  note_refused_memory();
  end_emulated_process(*control);
}

void on_fatal_signal(int signal, siginfo_t* info, void* context) {
  if (getpid() != server) return;  // a process that the kernel started: its end is its own
  note_refused_memory();
  if (signal == SIGABRT) end_emulated_process(*control);
  if (info->si_code <= 0) {  // sent, no instruction's fault: nothing runs again that could kill
    raise(signal);
    return;
  }
  control->fault_phase = control->phase.load();
  control->fault_in_other_thread = syscall(SYS_gettid) == server ? 0 : 1;
  control->signal = signal;
  control->fault_address = reinterpret_cast<std::uint64_t>(info->si_addr);
#if defined(__x86_64__)
  constexpr greg_t kWrite = 2;  // bit of the page fault's error code
  const auto* machine = static_cast<const ucontext_t*>(context);
  control->fault_is_write = (machine->uc_mcontext.gregs[REG_ERR] & kWrite) != 0 ? 1 : 0;
#else
  static_cast<void>(context);
#endif
  // SA_RESETHAND: returning runs the instruction again, and now it kills.
}

// One that this process sends itself is the kernel's end.
void on_request(int signal, siginfo_t* info, void*) {
  const bool from_itself = info->si_code <= 0 && info->si_pid == server;
  if (getpid() == server && !from_itself) return;
  ::signal(signal, SIG_DFL);
  raise(signal);
}

// Before every call, in case the kernel's library took the signals for itself.
void catch_signals() {
  struct sigaction action {};
  action.sa_sigaction = on_fatal_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  for (const int signal : kFatalSignals) sigaction(signal, &action, nullptr);
  action.sa_sigaction = on_request;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESTART);
  for (const int signal : kRequests) sigaction(signal, &action, nullptr);
}

void use_alternative_stack() {
  static char stack[std::size_t{1} << 16];
  stack_t alternative{};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof stack;
  sigaltstack(&alternative, nullptr);
}

void limit_resources(std::uint64_t memory_limit_bytes) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (!kMemoryLimits || memory_limit_bytes == 0) return;
  data_limit_bytes = data_bytes() + memory_limit_bytes;
  const rlimit data{data_limit_bytes, data_limit_bytes};
  setrlimit(RLIMIT_DATA, &data);
}

constexpr std::size_t kLeastAddresses = std::size_t{1} << 36;

// Addresses for every call of this process; none is used twice, so that memory of an earlier call
// is never there again.
bool reserve_addresses() {
  for (std::size_t bytes = std::size_t{1} << 43; bytes >= kLeastAddresses; bytes /= 2) {
    void* const memory =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) continue;
    control->reserved_begin = reinterpret_cast<std::uint64_t>(memory);
    control->reserved_end = control->reserved_begin + bytes;
    return true;
  }
  return false;
}

// Addresses come as numbers: the certifier's and the worker's are the same.
void* at_address(std::uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

bool map_segments() {
  for (std::uint32_t k = 0; k < control->segment_count; ++k) {
    const Segment& segment = control->segments[k];
    const bool writable = segment.access == Access::writable;
    const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void* const memory =
        mmap(at_address(segment.address), segment.bytes, protection,
             MAP_SHARED | MAP_FIXED | (segment.populate != 0 ? MAP_POPULATE : 0),
             writable ? kArena : kReadOnlyArena, static_cast<off_t>(segment.offset));
    if (memory == MAP_FAILED) return false;
  }
  return true;
}

void retire_segments() {
  if (control->range_begin == control->range_end) return;
  void* const begin = at_address(control->range_begin);
  const std::size_t bytes = control->range_end - control->range_begin;
  const void* const retired =
      mmap(begin, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (retired == MAP_FAILED) munmap(begin, bytes);  // to be touched by nobody either
}

// Ends this process even where nobody is left to do so and whatever the kernel does to signals.
class Deadline {
 public:
  Deadline() {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    armed_ = timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
  }
  void set(double seconds) const {
    itimerspec when{};
    when.it_value.tv_sec = static_cast<time_t>(std::ceil(seconds));
    if (armed_) timer_settime(timer_, 0, &when, nullptr);
  }

 private:
  timer_t timer_{};
  bool armed_ = false;
};

void describe(const attest_kernel& kernel) {
  const attest_description& d = kernel.description;
  Description& out = control->description;
  out.fields = d;
  out.fields.name = out.fields.summary = out.fields.schedule = out.fields.schedule_backward =
      nullptr;
  out.fields.limits = nullptr;
  out.has_limits = d.limits != nullptr ? 1 : 0;
  if (d.limits != nullptr) out.limits = *d.limits;
  put_text(out.name, sizeof out.name, d.name);
  put_text(out.summary, sizeof out.summary, d.summary == nullptr ? "" : d.summary);
  put_text(out.schedule, sizeof out.schedule, d.schedule == nullptr ? "" : d.schedule);
  out.has_schedule = d.schedule != nullptr ? 1 : 0;
  put_text(out.schedule_backward, sizeof out.schedule_backward,
           d.schedule_backward == nullptr ? "" : d.schedule_backward);
  out.has_schedule_backward = d.schedule_backward != nullptr ? 1 : 0;
  if (file_of_code.size() < sizeof out.file) put_text(out.file, sizeof out.file, file_of_code);
  out.has_workspace = kernel.workspace_bytes != nullptr ? 1 : 0;
}

void carry_out(const attest_kernel& kernel) {
  void* const arguments = at_address(control->arguments);
  switch (control->task) {
    case Task::workspace:
      control->workspace_bytes = kernel.workspace_bytes(
          kernel.self, static_cast<const attest_problem*>(arguments), control->direction);
      return;
    case Task::forward:
      control->status =
          kernel.forward(kernel.self, static_cast<const attest_forward_args*>(arguments));
      return;
    case Task::backward:
      control->status =
          kernel.backward(kernel.self, static_cast<const attest_backward_args*>(arguments));
      return;
    case Task::loss_gradient:
      control->status =
          kernel.loss_gradient(kernel.self, static_cast<const attest_loss_args*>(arguments));
      return;
    case Task::describe:
      break;
  }
  describe(kernel);
}

// The type of the exception that is being handled, as C++ spells it.
std::string exception_type() {
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "of another language";
  int status = 0;
  char* const spelled = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
  std::string name = spelled == nullptr ? type->name() : spelled;
  std::free(spelled);
  return name;
}

// Carries out the task. An exception that leaves a kernel would end a program in C: the process is
// of no more use then, nor is it where what ends a thread is thrown in this one.
std::optional<Fault> call(const attest_kernel& kernel) {
  const auto fault = [](const std::string& what) {
    return Fault{FaultKind::exception, exception_type() + what + " was thrown and not caught"};
  };
  try {
    carry_out(kernel);
  } catch (const abi::__forced_unwind&) {
    std::terminate();
  } catch (const std::bad_alloc&) {
    note_refused_memory();
    if (control->out_of_memory == 0) return fault("");
    return Fault{FaultKind::memory, "an allocation was refused at the memory limit, " +
                                        exception_type() + " was not caught"};
  } catch (const std::exception& error) {
    return fault(": '" + printable(error.what()) + "'");
  } catch (...) {
    return fault("");
  }
  return std::nullopt;
}

// Returns what the call did on a CUDA device. Where the device failed it is of no more use to this
// process, which ends with the error as its last words.
std::optional<gpu::cuda::Finding> device_finding() {
  std::optional<gpu::cuda::Finding> finding = gpu::cuda::take_finding();
  if (finding && finding->kind == gpu::cuda::Finding::Kind::device_failed) {
    std::fprintf(stderr, "%s\n", finding->text.c_str());
    std::abort();
  }
  return finding;
}

bool reply() { return send(kSocket, "r", 1, MSG_NOSIGNAL) == 1; }

bool next_task() {
  char byte = 0;
  ssize_t count = 0;
  do {
    count = recv(kSocket, &byte, 1, 0);
  } while (count < 0 && errno == EINTR);
  return count == 1;
}

}  // namespace

int serve(const Loader& load, const std::string& file) {
  constexpr int kUsage = 2;
  control = map_control();
  if (control == nullptr) return kUsage;
  if (!(control->layout == layout_of_messages())) _exit(kOtherVersion);
  server = getpid();
  use_alternative_stack();
  catch_signals();
  const sigset_t requests = request_set();  // held until now
  sigprocmask(SIG_UNBLOCK, &requests, nullptr);
  limit_resources(control->memory_limit_bytes);
  Surroundings surroundings(data_limit_bytes);
  const Deadline deadline;
  control->phase = Phase::loading;
  deadline.set(control->timeout_seconds + kGraceSeconds);
  std::vector<const attest_kernel*> kernels;
  LoadedFiles files;
  try {
    if (!reserve_addresses()) {
      throw InvalidProblem("a worker needs " + std::to_string(kLeastAddresses >> 30) +
                           " GiB of address space beside its program's; raise the limit "
                           "(ulimit -v, in KiB) by " +
                           std::to_string(kLeastAddresses >> 10) + ", or lift it (unlimited)");
    }
    kernels = load();
    control->needs_more = files.append_new(control->needed, sizeof control->needed) ? 0 : 1;
  } catch (const InvalidProblem& error) {
    put_text(control->text, sizeof control->text, error.what());
  }
  deadline.set(0);
  catch_signals();
  std::atexit(note_exit);  // after loading: before what the library does at the end
  surroundings.loaded();
  if (const std::string lost = surroundings.lost(); !lost.empty()) {
    put_text(control->text, sizeof control->text,
             "while it loaded it closed or replaced descriptors that its process is called by (" +
                 lost + "); leave them as they are");
    _exit(kUsage);
  }
  file_of_code = file;
  control->kernel_count = static_cast<std::uint32_t>(kernels.size());
  control->phase = Phase::idle;
  if (!reply()) return 0;
  while (next_task()) {
    if (!map_segments()) _exit(kUsage);
    catch_signals();
    deadline.set(control->timeout_seconds + kGraceSeconds);
    errno = 0;
    control->phase = Phase::calling;
    const attest_kernel& kernel = *kernels[control->index];
    begin_emulated_call(*control);
    std::optional<Fault> thrown = call(kernel);
    const std::string found = end_emulated_call(*control);
    if (thrown && !found.empty()) thrown->detail += "; " + found;
    const std::optional<gpu::cuda::Finding> on_device = device_finding();
    control->phase = Phase::inspecting;
    retire_segments();  // first, so that threads left running meet it
    files.append_new(control->loaded, sizeof control->loaded);
    std::optional<Fault> fault = surroundings.change(kernel.description.may_change);
    if (on_device) {
      const bool beside = on_device->kind == gpu::cuda::Finding::Kind::wrote_beside;
      fault = {beside ? FaultKind::out_of_bounds : FaultKind::input_written, on_device->text};
    }
    if (thrown) fault = thrown;
    if (fault) {
      put_text(control->text, sizeof control->text, fault->detail);
      control->disturbance = fault->kind;
      control->disturbed = 1;
    }
    deadline.set(0);
    while (control->signal != 0) pause();  // another thread is about to end the process
    control->phase = Phase::idle;
    if (!reply()) break;
  }
  _exit(0);  // without the library's destructors
}

}  // namespace attest::certify::worker
