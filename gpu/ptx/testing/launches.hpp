#pragma once

#include <string>
#include <vector>

#include "gpu/ptx/execution/executor.hpp"
#include "gpu/ptx/text/parser.hpp"

namespace attest::ptx::testing {

/// One launch of a PTX text's kernel with buffers and numbers as its parameters, in their order.
class Call {
 public:
  explicit Call(const std::string& text, const std::string& kernel = "")
      : program_(check(parse(text), kernel)), parameters_(program_) {}

  template <class T>
  Call& buffer(const char* name, std::vector<T>& values) {
    memory_.add(name, values.data(), static_cast<std::int64_t>(values.size()));
    parameters_.add(values.data());
    return *this;
  }
  template <class T>
  Call& input(const char* name, const std::vector<T>& values) {
    memory_.add(name, values.data(), static_cast<std::int64_t>(values.size()));
    parameters_.add(values.data());
    return *this;
  }
  /// Memory that no parameter of its own points to.
  template <class T>
  Call& memory(const char* name, std::vector<T>& values) {
    memory_.add(name, values.data(), static_cast<std::int64_t>(values.size()));
    return *this;
  }
  template <class T>
  Call& value(T value) {
    parameters_.add(value);
    return *this;
  }

  /// Blocks run on so many threads of the host.
  Call& on_threads(int threads) {
    threads_ = threads;
    return *this;
  }

  /// With checks, in that order of warps and blocks.
  simt::LaunchReport run(unsigned blocks, unsigned threads, std::int64_t dynamic_bytes = 0,
                         simt::Order order = simt::Order::ascending) const {
    simt::Emulation emulation;
    emulation.order = order;
    emulation.shared_checks = simt::SharedChecks::on;
    emulation.threads = threads_;
    constexpr std::uint64_t kMost = 1'000'000;
    return execute(program_, {{blocks, 1, 1}, {threads, 1, 1}, dynamic_bytes}, emulation, memory_,
                   parameters_, {Approximation::nearest, kMost});
  }

 private:
  Program program_;
  simt::GlobalMemory memory_;
  Parameters parameters_;
  int threads_ = 1;
};

/// The faults of a report, one name each.
inline std::vector<simt::Fault> faults(const simt::LaunchReport& report) {
  std::vector<simt::Fault> all;
  for (const simt::Diagnosis& each : report.diagnoses) all.push_back(each.fault);
  return all;
}

inline constexpr simt::Order kOrders[] = {simt::Order::ascending, simt::Order::descending,
                                          simt::Order::shuffled};

}  // namespace attest::ptx::testing
