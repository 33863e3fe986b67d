#include "gpu/kernels/emulated/fast_memory.hpp"

#include <charconv>
#include <map>
#include <string>

#include "core/error.hpp"

namespace attest::gpu {

extern const char* const kRegistersCsv;

namespace {

// Reads lines of "kernel",registers,local_bytes, after one of titles.
std::map<std::string, ThreadMemory, std::less<>> read_declared(std::string_view text) {
  std::map<std::string, ThreadMemory, std::less<>> all;
  text.remove_prefix(text.find('\n') + 1);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    const std::size_t quote = line.rfind('"');
    ThreadMemory memory{};
    const char* const end = line.data() + line.size();
    const auto read = std::from_chars(line.data() + quote + 2, end, memory.registers);
    std::from_chars(read.ptr + 1, end, memory.local_bytes);
    all.emplace(line.substr(1, quote - 1), memory);
  }
  return all;
}

}  // namespace

ThreadMemory declared_thread_memory(std::string_view kernel) {
  static const auto declared = read_declared(kRegistersCsv);
  if (const auto one = declared.find(kernel); one != declared.end()) return one->second;
  throw InvalidProblem(std::string(kernel) +
                       ": no registers are declared; add a line to gpu/results/registers.csv");
}

}  // namespace attest::gpu
