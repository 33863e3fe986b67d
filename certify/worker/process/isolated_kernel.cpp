#include "certify/worker/process/isolated_kernel.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "certify/worker/conduct/diagnosis.hpp"
#include "certify/worker/library/elf.hpp"
#include "certify/worker/process/processes.hpp"
#include "certify/worker/process/transfer.hpp"
#include "core/error.hpp"

namespace attest::certify::worker {
namespace {

// The lines of a text that a worker wrote, perhaps without an end.
template <std::size_t kSize>
std::set<std::string> lines_of(const char (&text)[kSize]) {
  std::set<std::string> all;
  std::istringstream lines(std::string(text, strnlen(text, kSize)));
  for (std::string line; std::getline(lines, line);) all.insert(line);
  return all;
}

constexpr const char* kLibraryWord = "--library";
constexpr const char* kEmulateWord = "--emulate";
constexpr double kEmulatedSlower = 20;  // a call may take so many times its limit

// The fault of the check that this thread is in.
thread_local std::optional<Fault> pending_fault;

std::string absolute_path(const std::string& path) {
  char* const resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string result = resolved;
  std::free(resolved);
  return result;
}

}  // namespace

struct IsolatedKernel::State {
  State(Source source, const Limits& given)
      : limits(given),
        processes(std::move(source), given),
        is_emulated(std::count(processes.source().words.begin(), processes.source().words.end(),
                               kEmulateWord) > 0) {}

  Limits limits;
  Processes processes;
  bool is_emulated;  // on a device that is none
  std::uint32_t index = 0;
  std::string name, summary, schedule, schedule_backward;
  CodeFile file;
  attest_limits claimed{};
  std::mutex mutex;                                          // of what follows
  std::map<std::thread::id, std::unique_ptr<Process>> idle;  // one for each calling thread
  double timeout_seconds = 0, slowest_seconds = 0;  // the latter of the calls that returned
  bool hung = false;                                // a call took the whole timeout
  std::set<std::string> loaded;                     // files, by calls

  using Fill = std::function<void(Transfer&)>;
  struct Reply {
    attest_status status = ATTEST_FAILED;
    std::size_t workspace_bytes = 0;
    std::string words;  // that a failed call left on the standard error
  };

  // One call in a worker; after a fault of this check nothing is called any more.
  Reply call(Task task, std::uint32_t direction, const Fill& fill);

  // The same of a call that may hand back a text.
  attest_status status(Task task, const Fill& fill, char* message, std::size_t message_bytes);

  std::unique_ptr<Process> take();
  void give_back(std::unique_ptr<Process> process, double seconds);
  void note_loaded(const Control& control);
  CallLimit limit();
};

std::unique_ptr<Process> IsolatedKernel::State::take() {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto own = idle.find(std::this_thread::get_id());
    if (own != idle.end()) {
      std::unique_ptr<Process> process = std::move(own->second);
      idle.erase(own);
      return process;
    }
  }
  return processes.begin();
}

void IsolatedKernel::State::give_back(std::unique_ptr<Process> process, double seconds) {
  const std::lock_guard<std::mutex> lock(mutex);
  slowest_seconds = std::max(slowest_seconds, seconds);
  idle[std::this_thread::get_id()] = std::move(process);
}

void IsolatedKernel::State::note_loaded(const Control& control) {
  if (control.loaded[0] == '\0') return;
  const std::lock_guard<std::mutex> lock(mutex);
  loaded.merge(lines_of(control.loaded));
}

CallLimit IsolatedKernel::State::limit() {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!hung) return {timeout_seconds, ""};
  return limit_after_hang(timeout_seconds, slowest_seconds);
}

IsolatedKernel::State::Reply IsolatedKernel::State::call(Task task, std::uint32_t direction,
                                                         const Fill& fill) {
  if (pending_fault) return {};
  constexpr int kAttempts = 2;
  std::unique_ptr<Process> process;
  std::optional<Transfer> transfer;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    process = take();
    process->keep_memory();
    transfer.emplace(process->arena(), process->next_address, is_emulated);
    fill(*transfer);
    const std::uint64_t next = transfer->publish(task);
    const Control& control = process->control();
    const bool fits = next <= control.reserved_end;
    if (!fits && process->next_address == control.reserved_begin) {
      throw InvalidProblem("kernel '" + name +
                           "': a call needs more addresses than a worker has; "
                           "choose a smaller problem");
    }
    process->next_address = next;
    if (fits) break;
    process.reset();  // its addresses are used up
  }
  Control& control = process->arena().control();
  control.index = index;
  control.direction = direction;
  const CallLimit allowed = limit();
  const auto begin = std::chrono::steady_clock::now();
  const Process::Ending ending = process->run(allowed.seconds);
  if (control.not_emulated != 0) {
    throw InvalidProblem("kernel '" + name + "' cannot be emulated: " + control.text);
  }
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  pending_fault = diagnose(*process, ending, *transfer, allowed);
  if (pending_fault) {
    if (const std::string words = process->last_words(); !words.empty()) {
      pending_fault->detail += ": " + words;
    }
    if (pending_fault->kind == FaultKind::hang) {
      const std::lock_guard<std::mutex> lock(mutex);
      hung = true;
    }
    return {};
  }
  transfer->copy_back();
  note_loaded(control);
  const auto status = static_cast<attest_status>(control.status);
  const Reply reply{status, static_cast<std::size_t>(control.workspace_bytes),
                    status == ATTEST_FAILED ? process->last_words() : ""};
  transfer.reset();
  process->arena().trim();
  give_back(std::move(process), took);
  return reply;
}

attest_status IsolatedKernel::State::status(Task task, const Fill& fill, char* message,
                                            std::size_t message_bytes) {
  const Reply reply = call(task, 0, fill);
  if (!reply.words.empty() && message != nullptr && message_bytes > 0) {
    const std::string said = message;
    put_text(message, message_bytes,
             (said.empty() ? "" : said + "; ") + "on its standard error: " + reply.words);
  }
  return reply.status;
}

namespace {

using State = IsolatedKernel::State;

// The C functions give the State back as it was stored: not const.
State& state_of(const void* self) { return *static_cast<State*>(const_cast<void*>(self)); }

std::size_t workspace_proxy(const void* self, const attest_problem* problem,
                            std::uint32_t direction) {
  State& state = state_of(self);
  const std::size_t bytes =
      state
          .call(Task::workspace, direction, [&](Transfer& transfer) { transfer.problem(*problem); })
          .workspace_bytes;
  constexpr std::uint64_t kLeastLimit = std::uint64_t{1} << 30;
  const std::uint64_t limit = std::max(state.limits.memory_limit_bytes, kLeastLimit);
  if (bytes <= limit) return bytes;
  pending_fault =
      Fault{FaultKind::workspace_size, "workspace_bytes asks for " + std::to_string(bytes) +
                                           " bytes, the limit is " + std::to_string(limit)};
  return 0;
}

// The longer one first, for the other may lie in it.
template <class Arguments>
void give_keys_and_values(Transfer& transfer, const Arguments& args, Arguments& out) {
  const bool v_first = args.V->shape[args.V->ndim - 1] > args.K->shape[args.K->ndim - 1];
  if (v_first) out.V = transfer.tensor("V", args.V, Access::read_only);
  out.K = transfer.tensor("K", args.K, Access::read_only);
  if (!v_first) out.V = transfer.tensor("V", args.V, Access::read_only);
}

attest_status forward_proxy(const void* self, const attest_forward_args* args) {
  const auto fill = [args](Transfer& transfer) {
    attest_forward_args& out = transfer.arguments().forward;
    out = *args;
    out.problem = transfer.problem(*args->problem);
    out.Q = transfer.tensor("Q", args->Q, Access::read_only);
    give_keys_and_values(transfer, *args, out);
    out.O = transfer.tensor("O", args->O, Access::writable);
    out.LSE = transfer.tensor("LSE", args->LSE, Access::writable);
    out.bias = transfer.tensor("bias", args->bias, Access::read_only);
    out.workspace = transfer.workspace(args->workspace_bytes);
    out.stream = transfer.stream();
    out.message = transfer.message(args->message, args->message_bytes);
  };
  return state_of(self).status(Task::forward, fill, args->message, args->message_bytes);
}

attest_status backward_proxy(const void* self, const attest_backward_args* args) {
  const auto fill = [args](Transfer& transfer) {
    attest_backward_args& out = transfer.arguments().backward;
    out = *args;
    out.problem = transfer.problem(*args->problem);
    out.Q = transfer.tensor("Q", args->Q, Access::read_only);
    give_keys_and_values(transfer, *args, out);
    out.O = transfer.tensor("O", args->O, Access::read_only);
    out.LSE = transfer.tensor("LSE", args->LSE, Access::read_only);
    out.dO = transfer.tensor("dO", args->dO, Access::read_only);
    out.dLSE = transfer.tensor("dLSE", args->dLSE, Access::read_only);
    out.dQ = transfer.tensor("dQ", args->dQ, Access::writable);
    out.dK = transfer.tensor("dK", args->dK, Access::writable);
    out.dV = transfer.tensor("dV", args->dV, Access::writable);
    out.dSinks = transfer.tensor("dSinks", args->dSinks, Access::writable);
    out.bias = transfer.tensor("bias", args->bias, Access::read_only);
    out.dBias = transfer.tensor("dBias", args->dBias, Access::writable);
    out.workspace = transfer.workspace(args->workspace_bytes);
    out.stream = transfer.stream();
    out.message = transfer.message(args->message, args->message_bytes);
  };
  return state_of(self).status(Task::backward, fill, args->message, args->message_bytes);
}

attest_status loss_proxy(const void* self, const attest_loss_args* args) {
  const auto fill = [args](Transfer& transfer) {
    attest_loss_args& out = transfer.arguments().loss;
    out = *args;
    out.problem = transfer.problem(*args->problem);
    out.A1 = transfer.tensor("A1", args->A1, Access::read_only);
    out.A2 = transfer.tensor("A2", args->A2, Access::read_only);
    out.A3 = transfer.tensor("A3", args->A3, Access::read_only);
    out.E = transfer.tensor("E", args->E, Access::read_only);
    out.X = transfer.tensor("X", args->X, Access::read_only);
    out.Y = transfer.tensor("Y", args->Y, Access::read_only);
    out.dX = transfer.tensor("dX", args->dX, Access::writable);
    out.dY = transfer.tensor("dY", args->dY, Access::writable);
    out.workspace = transfer.workspace(args->workspace_bytes);
    out.stream = transfer.stream();
    out.message = transfer.message(args->message, args->message_bytes);
  };
  return state_of(self).status(Task::loss_gradient, fill, args->message, args->message_bytes);
}

// Requires: a library's is asked for before it is loaded, so that what is loaded is no older.
CodeFile code_file(const std::string& path) {
  return {path, path.empty() ? std::nullopt : identity_of_file(path)};
}

// Returns the folder of the emulated device's libraries: beside the program that loads them.
std::string folder_of_device(const Source& source, const Limits& limits) {
  namespace fs = std::filesystem;
  const fs::path program = !source.program.empty()   ? source.program
                           : !limits.program.empty() ? limits.program
                                                     : "/proc/self/exe";
  std::error_code none;
  return (fs::canonical(program, none).parent_path().parent_path() / "lib/attest/").string();
}

// The libraries that came with one, but for the system's and the emulated device's.
std::vector<CodeFile> needed_files(const Control& control, const std::string& library,
                                   const std::string& device) {
  namespace fs = std::filesystem;
  std::set<std::string> paths;
  if (control.needs_more != 0) {
    throw InvalidProblem("library '" + library +
                         "': the paths of the libraries that it is linked "
                         "with take more than " +
                         std::to_string(sizeof control.needed) +
                         " bytes, too many to be noted; link fewer, or put them where paths are "
                         "shorter");
  }
  for (const std::string& line : lines_of(control.needed)) {
    std::error_code none;
    const std::string path = fs::canonical(line, none).string();
    const bool of_system = path.empty() || path.starts_with("/lib") ||
                           path.starts_with("/usr/lib") || path.starts_with(device);
    if (!of_system && path != fs::canonical(library, none).string()) paths.insert(path);
  }
  std::vector<CodeFile> files;
  for (const std::string& path : paths) files.push_back(code_file(path));
  return files;
}

IsolatedKernels load(Source source, const Limits& limits, const std::string& prefix) {
  const bool of_library = !source.words.empty() && source.words.front() == kLibraryWord;
  CodeFile library = code_file(of_library ? source.words[1] : "");
  const bool forks = std::exchange(source.forks, false);  // one that describes itself is not kept
  Process process(source, limits);
  source.forks = forks;
  source.words.insert(source.words.end(), source.again.begin(), source.again.end());
  Control& control = process.arena().control();
  if (of_library) {
    library.needed = needed_files(control, library.path, folder_of_device(source, limits));
  }
  IsolatedKernels kernels;
  for (std::uint32_t index = 0; index < control.kernel_count; ++index) {
    control.task = Task::describe;
    control.index = index;
    if (process.run(limits.timeout_seconds) != Process::Ending::finished) {
      throw InvalidProblem(source.subject + ": died while it described itself");
    }
    const Description description = control.description;
    kernels.push_back(std::make_unique<IsolatedKernel>(
        source, limits, index, prefix + description.name, description,
        of_library ? library : code_file(description.file)));
  }
  return kernels;
}

}  // namespace

IsolatedKernel::IsolatedKernel(Source source, const Limits& limits, std::uint32_t index,
                               const std::string& name, const Description& description,
                               CodeFile file)
    : state_(std::make_unique<State>(std::move(source), limits)) {
  state_->index = index;
  state_->name = name;
  state_->summary = description.summary;
  state_->schedule = description.schedule;
  state_->schedule_backward = description.schedule_backward;
  state_->file = std::move(file);
  state_->timeout_seconds = limits.timeout_seconds * (state_->is_emulated ? kEmulatedSlower : 1);
  kernel_.struct_size = sizeof kernel_;
  kernel_.abi_version = ATTEST_ABI_VERSION;
  kernel_.description = description.fields;
  kernel_.description.struct_size = sizeof kernel_.description;
  kernel_.description.numerics.struct_size = sizeof kernel_.description.numerics;
  kernel_.description.name = state_->name.c_str();
  kernel_.description.summary = state_->summary.c_str();
  kernel_.description.schedule = description.has_schedule != 0 ? state_->schedule.c_str() : nullptr;
  kernel_.description.schedule_backward =
      description.has_schedule_backward != 0 ? state_->schedule_backward.c_str() : nullptr;
  state_->claimed = description.limits;
  kernel_.description.limits = description.has_limits != 0 ? &state_->claimed : nullptr;
  kernel_.self = state_.get();
  const std::uint32_t directions = description.fields.directions;
  if (description.has_workspace != 0) kernel_.workspace_bytes = workspace_proxy;
  if ((directions & ATTEST_FORWARD) != 0) kernel_.forward = forward_proxy;
  if ((directions & ATTEST_BACKWARD) != 0) kernel_.backward = backward_proxy;
  if ((directions & ATTEST_LOSS_GRADIENT) != 0) kernel_.loss_gradient = loss_proxy;
}

IsolatedKernel::~IsolatedKernel() = default;

IsolatedKernels isolate_library(const std::string& path, const Limits& limits, bool emulate) {
  require_library(path);
  const std::string file = absolute_path(path);
  Source source{"",
                {kLibraryWord, file},
                {},
                "library '" + file + "'",
                "its initialisation or attest_get_kernel",
                ""};
  if (emulate) {
    source.words.emplace_back(kEmulateWord);
    source.options = std::string(" ") + kEmulateWord;
  }
  return load(std::move(source), limits, path + ":");
}

IsolatedKernels isolate_program(Source source, const Limits& limits, const std::string& prefix) {
  return load(std::move(source), limits, prefix);
}

std::unique_ptr<IsolatedKernel> isolate_builtin(const std::string& kernel_name,
                                                const Limits& limits) {
  return std::move(
      load({"", {"--kernel", kernel_name}, {}, "kernel '" + kernel_name + "'", "it", " --isolate"},
           limits, "")
          .front());
}

bool needs_worker(const attest_description& description) {
  return description.device == ATTEST_CUDA;
}

bool is_isolated(const attest_kernel& kernel) {
  return kernel.forward == forward_proxy || kernel.loss_gradient == loss_proxy;
}

std::string isolation_words(const attest_kernel& kernel) {
  if (!is_isolated(kernel)) return "";
  const State& state = state_of(kernel.self);
  const Limits usual;
  std::string words = state.processes.source().options;
  if (state.limits.timeout_seconds != usual.timeout_seconds) {
    words += fmt::format(" --timeout {}", state.limits.timeout_seconds);
  }
  if (state.limits.memory_limit_bytes != usual.memory_limit_bytes) {
    words += fmt::format(" --memory-limit {}", state.limits.memory_limit_bytes >> 20);
  }
  return words;
}

std::optional<std::string> library_of(const attest_kernel& kernel) {
  if (!is_isolated(kernel)) return std::nullopt;
  const std::string& file = state_of(kernel.self).file.path;
  return file.empty() ? std::nullopt : std::optional(file);
}

void refuse_written_again(const attest_kernel& kernel) {
  throw InvalidProblem(fmt::format(
      "the file of '{}' was written again while it was certified; certify it once that is done",
      kernel.description.name));
}

void require_same_file(const attest_kernel& kernel) {
  if (!is_isolated(kernel)) return;
  const CodeFile& file = state_of(kernel.self).file;
  if (file.path.empty()) return;
  if (identity_of_file(file.path) != file.identity) refuse_written_again(kernel);
  for (const CodeFile& one : file.needed) {
    if (identity_of_file(one.path) == one.identity) continue;
    throw InvalidProblem(fmt::format(
        "'{}', which '{}' is linked with, was written again while that was certified; certify it "
        "once that is done",
        one.path, kernel.description.name));
  }
}

std::vector<std::string> needed_by(const attest_kernel& kernel) {
  std::vector<std::string> paths;
  if (!is_isolated(kernel)) return paths;
  for (const CodeFile& one : state_of(kernel.self).file.needed) paths.push_back(one.path);
  return paths;
}

std::vector<std::string> loaded_in_calls(const attest_kernel& kernel) {
  if (!is_isolated(kernel)) return {};
  State& state = state_of(kernel.self);
  const std::lock_guard<std::mutex> lock(state.mutex);
  return {state.loaded.begin(), state.loaded.end()};
}

proptest::LawResult check(const proptest::Law& law, const attest_kernel& kernel,
                          const proptest::Case& c) {
  pending_fault.reset();
  proptest::LawResult result = law.check(kernel, c);
  if (pending_fault) {
    result = {verdict_of(pending_fault->kind), pending_fault->text(), {}};
    pending_fault.reset();
  }
  return result;
}

void restart(const attest_kernel& kernel) {
  if (!is_isolated(kernel)) return;
  State& state = state_of(kernel.self);
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.idle.erase(std::this_thread::get_id());
}

std::optional<int> checks_until_failure(const proptest::Law& law, const attest_kernel& kernel,
                                        const proptest::Case& c, int most) {
  if (!is_isolated(kernel)) return 1;
  restart(kernel);
  for (int count = 1; count <= most; ++count) {
    const Verdict verdict = check(law, kernel, c).verdict;
    if (verdict == Verdict::violated || verdict == Verdict::crashed) return count;
  }
  return std::nullopt;
}

}  // namespace attest::certify::worker
