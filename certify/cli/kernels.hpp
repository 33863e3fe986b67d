#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "certify/cli/python_function.hpp"
#include "certify/worker/process/isolated_kernel.hpp"
#include "core/registry.hpp"

namespace attest::certify::cli {

/// Which kernels are called in worker processes: those of shared libraries, or built-in ones too.
enum class Isolation : std::uint8_t { libraries, everything };

struct IsolationOptions {
  bool isolate = false;
  bool emulate = false;  // libraries for CUDA
  double timeout_seconds = worker::Limits().timeout_seconds;
  std::uint64_t memory_limit_mib = worker::Limits().memory_limit_bytes >> 20;
  FunctionOptions functions;

  Isolation isolation() const { return isolate ? Isolation::everything : Isolation::libraries; }
  worker::Limits limits() const;
};

/// --isolate, --timeout and --memory-limit.
void add_isolation_options(CLI::App& command, IsolationOptions& options);

/// Sets the options that words give as the line of a finding does: " --emulate --timeout 1". Throws
/// InvalidProblem for others.  [certify/cli/tests/pipelines_test]
void read_isolation(const std::string& words, IsolationOptions& options);

/// Tells whether a word given as kernel is a shared library, "./libmine.so" or "./libmine.so:name".
bool names_library(const std::string& word);

/// The one kernel a word stands for, of a library that is loaded into this process.
const attest_kernel& find_in_process(const Registry& built_in, const std::string& word);

/// The kernels of one command: built in, or loaded from the libraries it names.
class Kernels {
 public:
  Kernels(const Registry& built_in, const IsolationOptions& options);

  /// The kernels a word stands for: one by name, all or the one of that name of a library, a
  /// function in Python, once for each configuration of its autotuned kernels where that is asked.
  /// Throws InvalidProblem with the nearest name, or why a library or a function cannot be loaded.
  std::vector<const attest_kernel*> find(const std::string& word);

  /// The only one a word stands for; throws InvalidProblem naming the choices when there are more.
  const attest_kernel& find_one(const std::string& word);

  /// All kernels known by now.
  const Registry& registry() const { return registry_; }

 private:
  const worker::IsolatedKernels& library(const std::string& path);
  const attest_kernel& function(const std::string& word, const FunctionOptions& options);
  std::vector<const attest_kernel*> functions(const std::string& word);

  Registry registry_;
  Isolation isolation_;
  bool emulate_;
  worker::Limits limits_;
  FunctionOptions function_options_;
  std::map<std::string, worker::IsolatedKernels> libraries_;  // and functions, by their words
  worker::IsolatedKernels built_in_;
};

/// Returns content_of_code of each kernel.
std::vector<std::string> library_contents(const std::vector<const attest_kernel*>& kernels);

/// Workers that are started again load what is there then: results of two builds certify neither.
/// Throws InvalidProblem where a library is another than `before`.
void require_unchanged(const std::vector<const attest_kernel*>& kernels,
                       const std::vector<std::string>& before);

}  // namespace attest::certify::cli
