#include "python/api/isolation.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "certify/worker/library/description.hpp"
#include "certify/worker/process/isolated_kernel.hpp"
#include "certify/worker/process/serve.hpp"
#include "core/error.hpp"
#include "python/api/contract.hpp"
#include "python/api/options.hpp"

namespace attest::python {
namespace {

using certify::worker::IsolatedKernels;

std::mutex mutex;  // of what follows
IsolatedKernels started;

certify::worker::Limits parse_limits(std::string_view line) {
  constexpr std::uint64_t kMostSeconds = 86400, kMostMib = std::uint64_t{1} << 30;
  certify::worker::Limits limits;
  read_options(line,
               {{"timeout",
                 [&](auto& text) {
                   limits.timeout_seconds =
                       static_cast<double>(whole_number("timeout", text, 1, kMostSeconds));
                 }},
                {"memory_limit",
                 [&](auto& text) {
                   limits.memory_limit_bytes = whole_number("memory_limit", text, 0, kMostMib)
                                               << 20;
                 }}},
               "timeout=30 memory_limit=4096");
  return limits;
}

}  // namespace

const attest_kernel* isolate(const char* const* command, std::string_view limits) {
  if (*command == nullptr) throw InvalidProblem("command is empty; give a program's file");
  certify::worker::Source source;
  source.program = *command;
  for (const char* const* word = command + 1; *word != nullptr; ++word) {
    source.words.emplace_back(*word);
  }
  source.again = {"--described"};
  source.forks = true;
  source.subject = "the process of the kernel";
  source.loading = "loading the kernel";
  IsolatedKernels kernels =
      certify::worker::isolate_program(std::move(source), parse_limits(limits), "");
  const std::lock_guard<std::mutex> lock(mutex);
  started.push_back(std::move(kernels.front()));
  return &started.back()->kernel();
}

void release(const attest_kernel* kernel) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = std::find_if(started.begin(), started.end(),
                                  [&](const auto& one) { return &one->kernel() == kernel; });
  if (found != started.end()) started.erase(found);
}

void serve(const attest_kernel* kernel, const char* contract, const char* refusal,
           const char* file) {
  attest_kernel served{};
  const auto load = [&]() -> std::vector<const attest_kernel*> {
    if (kernel == nullptr) {
      throw InvalidProblem(refusal == nullptr ? "the program has no kernel" : refusal);
    }
    served = under(*kernel, contract);
    if (const std::string why = certify::worker::objection(served); !why.empty()) {
      throw InvalidProblem(why);
    }
    return {&served};
  };
  const int status = certify::worker::serve(load, file == nullptr ? "" : file);
  if (status != 0) {
    throw InvalidProblem(
        "no certifier started this process; attest_isolate starts programs that "
        "call attest_serve");
  }
}

}  // namespace attest::python
