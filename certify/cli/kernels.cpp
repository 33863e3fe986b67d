#include "certify/cli/kernels.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include "certify/campaign/code_content.hpp"
#include "certify/cli/commands.hpp"
#include "certify/cli/commands/sparse_check.hpp"
#include "certify/worker/library/library.hpp"
#include "core/error.hpp"
#include "core/text/suggest.hpp"
#include "fixtures/register.hpp"

namespace attest::certify::cli {
namespace {

struct LibraryWord {
  std::string path, kernel;  // kernel empty: all
};

// A colon separates the kernel's name, unless a file of the whole name exists.
LibraryWord split(const std::string& word) {
  struct stat status {};
  const std::size_t colon = word.rfind(':');
  if (colon == std::string::npos || stat(word.c_str(), &status) == 0) return {word, ""};
  return {word.substr(0, colon), word.substr(colon + 1)};
}

}  // namespace

worker::Limits IsolationOptions::limits() const {
  worker::Limits limits;
  limits.timeout_seconds = timeout_seconds;
  limits.memory_limit_bytes = memory_limit_mib << 20;
  return limits;
}

void add_isolation_options(CLI::App& command, IsolationOptions& options) {
  constexpr double kLeastSeconds = 0.01, kMostSeconds = 86400;
  constexpr std::uint64_t kMostMib = std::uint64_t{1} << 30;
  command.add_flag("--isolate", options.isolate,
                   "call built-in kernels in a worker process too, as libraries and what runs on a "
                   "device are");
  command
      .add_option("--timeout", options.timeout_seconds,
                  "seconds one call in a worker may take, default 30")
      ->check(number_between(kLeastSeconds, kMostSeconds));
  command
      .add_option("--memory-limit", options.memory_limit_mib,
                  "MiB a kernel in a worker may allocate, default 4096; 0: any")
      ->check(CLI::Range(std::uint64_t{0}, kMostMib));
}

void read_isolation(const std::string& words, IsolationOptions& options) {
  CLI::App reader;
  reader.add_flag("--emulate", options.emulate);
  add_isolation_options(reader, options);
  add_function_options(reader, options.functions);
  try {
    reader.parse(words);
  } catch (const CLI::Error& error) {
    throw InvalidProblem("the options '" + words + "' of a shard: " + error.what());
  }
}

bool names_library(const std::string& word) {
  const std::string path = split(word).path;
  const auto begins = [&](const char* text) { return path.rfind(text, 0) == 0; };
  const auto ends = [&](std::string_view text) {
    return path.size() >= text.size() &&
           path.compare(path.size() - text.size(), text.size(), text) == 0;
  };
  return begins("./") || begins("../") || begins("/") || ends(".so") ||
         path.find(".so.") != std::string::npos;
}

const attest_kernel& find_in_process(const Registry& built_in, const std::string& word) {
  require_dense(word);
  if (!names_library(word)) return built_in.find(word);
  const LibraryWord parts = split(word);
  for (const attest_kernel* kernel : worker::open_library(parts.path)) {
    if (parts.kernel.empty() || parts.kernel == kernel->description.name) return *kernel;
  }
  throw InvalidProblem("library '" + parts.path + "': has no kernel '" + parts.kernel + "'");
}

Kernels::Kernels(const Registry& built_in, const IsolationOptions& options)
    : registry_(built_in),
      isolation_(options.isolation()),
      emulate_(options.emulate),
      limits_(options.limits()),
      function_options_(options.functions) {}

const worker::IsolatedKernels& Kernels::library(const std::string& path) {
  const auto known = libraries_.find(path);
  if (known != libraries_.end()) return known->second;
  const auto& kernels =
      libraries_.emplace(path, worker::isolate_library(path, limits_, emulate_)).first->second;
  for (const auto& kernel : kernels) registry_.add(&kernel->kernel());
  return kernels;
}

const attest_kernel& Kernels::function(const std::string& word, const FunctionOptions& options) {
  auto known = libraries_.find(word);
  if (known == libraries_.end()) {
    const std::string place = word.substr(0, word.substr(0, word.find('[')).rfind(':') + 1);
    auto kernels = worker::isolate_program(function_source(word, options), limits_, place);
    known = libraries_.emplace(word, std::move(kernels)).first;
    registry_.add(&known->second.front()->kernel());
  }
  return known->second.front()->kernel();
}

std::vector<const attest_kernel*> Kernels::functions(const std::string& word) {
  if (function_options_.autotune != "each") return {&function(word, function_options_)};
  FunctionOptions options = function_options_;
  options.autotune.clear();  // each word names its own
  std::vector<const attest_kernel*> found;
  for (const std::string& one : function_configurations(word, function_options_)) {
    found.push_back(&function(word + "[" + one + "]", options));
  }
  return found;
}

std::vector<const attest_kernel*> Kernels::find(const std::string& word) {
  require_dense(word);
  if (emulate_ && !names_library(word)) {
    throw InvalidProblem("--emulate: '" + word +
                         "' is no library for CUDA; pass one (./libmine.so). Kernels of `attest "
                         "list kernels` named gpu/... are emulated without it, and in every order "
                         "of lanes and blocks by attest emulate");
  }
  if (names_function(word)) return functions(word);
  if (function_options_.given()) {
    throw InvalidProblem("'" + word +
                         "' is no function in Python, which --like, --numerics and "
                         "such are for; write package.module:function or file.py:function");
  }
  if (!names_library(word)) {
    const attest_kernel& kernel = registry_.find(word);
    const bool apart = worker::needs_worker(kernel.description) || is_cheat(word);
    if (isolation_ == Isolation::libraries && !apart) {
      return {&kernel};
    }
    built_in_.push_back(worker::isolate_builtin(word, limits_));
    return {&built_in_.back()->kernel()};
  }
  const LibraryWord parts = split(word);
  std::vector<const attest_kernel*> found;
  std::vector<std::string> names;
  for (const auto& kernel : library(parts.path)) {
    const std::string name(kernel->kernel().description.name);
    names.push_back(name);
    if (parts.kernel.empty() || name == word) found.push_back(&kernel->kernel());
  }
  if (found.empty()) {
    throw InvalidProblem("library '" + parts.path + "': has no kernel '" + parts.kernel + "'" +
                         did_you_mean(word, names) + " (`attest list " + parts.path +
                         "` shows all)");
  }
  return found;
}

const attest_kernel& Kernels::find_one(const std::string& word) {
  const std::vector<const attest_kernel*> found = find(word);
  if (found.size() == 1) return *found.front();
  std::vector<std::string> names;
  names.reserve(found.size());
  for (const attest_kernel* kernel : found) names.emplace_back(kernel->description.name);
  throw InvalidProblem(fmt::format("'{}': has {} kernels; choose one: {}", word, found.size(),
                                   fmt::join(names, ", ")));
}

std::vector<std::string> library_contents(const std::vector<const attest_kernel*>& kernels) {
  std::vector<std::string> contents;
  for (const attest_kernel* kernel : kernels) {
    contents.push_back(content_of_code(*kernel));
  }
  return contents;
}

void require_unchanged(const std::vector<const attest_kernel*>& kernels,
                       const std::vector<std::string>& before) {
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    if (content_of_code(*kernels[k]) != before[k]) worker::refuse_written_again(*kernels[k]);
  }
}

}  // namespace attest::certify::cli
