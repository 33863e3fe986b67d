#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "certify/worker/conduct/fault.hpp"
#include "certify/worker/library/file_identity.hpp"
#include "certify/worker/process/process.hpp"
#include "core/abi/attest_kernel.h"
#include "proptest/laws/law.hpp"

/// Kernels that run in worker processes, as kernels like any other.
namespace attest::certify::worker {

/// File of a kernel's code, and its identity when it was loaded first.
struct CodeFile {
  std::string path;  // empty: built in
  std::optional<FileIdentity> identity;
  std::vector<CodeFile> needed{};  // libraries that were loaded with it, but for the system's
};

/// A kernel whose calls are carried out by worker processes; to its caller a kernel like any other.
/// Tensors are copied to memory shared with the worker and back. Harm to the kernel's process is
/// not a status: the call returns ATTEST_FAILED, and `check` turns the fault into the case's
/// result. Calls of several threads run in as many processes: what a kernel remembers of one
/// thread's calls does not reach another's.
class IsolatedKernel {
 public:
  IsolatedKernel(Source source, const Limits& limits, std::uint32_t index, const std::string& name,
                 const Description& description, CodeFile file);
  ~IsolatedKernel();
  IsolatedKernel(const IsolatedKernel&) = delete;
  IsolatedKernel& operator=(const IsolatedKernel&) = delete;

  const attest_kernel& kernel() const { return kernel_; }

  struct State;  // worker processes and what is known about them; internal

 private:
  std::unique_ptr<State> state_;
  attest_kernel kernel_{};
};

using IsolatedKernels = std::vector<std::unique_ptr<IsolatedKernel>>;

/// The kernels of a shared library, each named "PATH:NAME", PATH as given. Throws InvalidProblem
/// when the library cannot be loaded or describes nonsense. With `emulate` those of a library for
/// CUDA, whose PTX is carried out.
/// [certify/worker/library/library_test "a good library",
/// certify/worker/library/emulated_library_test]
IsolatedKernels isolate_library(const std::string& path, const Limits& limits,
                                bool emulate = false);

/// The kernels of a program that calls worker::serve, under the names that it gives them, with the
/// prefix before each. Throws InvalidProblem when the program cannot be started or has no kernel,
/// with its reason.  [certify/worker/program_test "a program that serves"]
IsolatedKernels isolate_program(Source source, const Limits& limits, const std::string& prefix);

/// A kernel built into the program, under its own name.
/// [certify/worker/isolation_test "strides arrive"]
std::unique_ptr<IsolatedKernel> isolate_builtin(const std::string& kernel_name,
                                                const Limits& limits);

/// Tells whether a built-in kernel must be called in a worker: an error on a device is one of its
/// whole process, and nothing that comes after it there can be trusted.
/// [certify/worker/isolation_test "when it runs on a device"]
bool needs_worker(const attest_description& description);

/// Tells whether the kernel is one of an IsolatedKernel.
bool is_isolated(const attest_kernel& kernel);

/// The options of `attest check` that call the kernel in the same way, each after a blank:
/// " --isolate" for a built-in one, " --emulate" for a library's whose PTX is carried out, those of
/// its Source, " --timeout" and " --memory-limit" where they are not the defaults; "" for a kernel
/// of this process.  [certify/worker/isolation_test "same limits"]
std::string isolation_words(const attest_kernel& kernel);

/// The file of an isolated kernel's code: its library, or the file that its program tells of;
/// nothing for a kernel that is built in.
/// [certify/worker/library/library_test "a good library"]
std::optional<std::string> library_of(const attest_kernel& kernel);

/// Throws InvalidProblem that names the kernel: its file was written again, and processes that were
/// started since have loaded another than the first.
[[noreturn]] void refuse_written_again(const attest_kernel& kernel);

/// Requires that the file of the kernel's code, and the libraries that were loaded with it, have
/// the identity with which they were loaded first; else throws as refuse_written_again does. Asks
/// nothing of a kernel that is built in.
/// [certify/worker/library/library_test "a library that is written again", "is linked with"]
void require_same_file(const attest_kernel& kernel);

/// Libraries that were loaded with that of the kernel, sorted: whole paths, without those of the
/// system (/lib, /usr/lib) and of emulated devices. None of a kernel that is no library's.
/// [certify/worker/library/library_test "is linked with"]
std::vector<std::string> needed_by(const attest_kernel& kernel);

/// Files of code that calls of the kernel have loaded by now, as a library that is called in its
/// place; empty for a kernel of this process.  [certify/worker/library/library_test "a library that
/// calls another"]
std::vector<std::string> loaded_in_calls(const attest_kernel& kernel);

/// Checks a law on a case. A fault of an isolated kernel overrides what the law said: its text is
/// the message, its gravity the verdict.
/// [certify/worker/isolation_test "every misbehaviour has its own finding"]
proptest::LawResult check(const proptest::Law& law, const attest_kernel& kernel,
                          const proptest::Case& c);

/// Has this thread's next call of an isolated kernel begin in a fresh process.
void restart(const attest_kernel& kernel);

/// How often a case must be checked in one fresh process until it fails: 1 for an ordinary failure,
/// more for a kernel whose results depend on its earlier calls, nothing when it never fails
/// within `most` checks. A kernel that is not isolated gives 1.
/// [certify/worker/isolation_test "a failure that needs earlier calls"]
std::optional<int> checks_until_failure(const proptest::Law& law, const attest_kernel& kernel,
                                        const proptest::Case& c, int most);

}  // namespace attest::certify::worker
