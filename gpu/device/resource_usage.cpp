#include "gpu/device/resource_usage.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>
#include <sstream>
#include <utility>

#include "core/error.hpp"

namespace attest::gpu::cuda {
namespace {

std::string demangled(const std::string& name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

// The number before a word, as in "Used 168 registers, 1024 bytes smem"; 0 where there is none.
int number_before(const std::string& line, const std::string& words) {
  std::smatch match;
  const bool found = std::regex_search(line, match, std::regex("([0-9]+) " + words));
  return found ? std::stoi(match[1]) : 0;
}

}  // namespace

std::vector<ResourceUsage> parse_ptxas(const std::string& text) {
  static const std::regex entry("Compiling entry function '([^']+)' for '([^']+)'");
  static const std::regex name(R"((\w+)<(\d+), (?:\w+::)*(\w+)>\()");
  constexpr int kUnits = 8;
  std::vector<ResourceUsage> all;
  std::istringstream lines(text);
  bool known = false;  // the kernel that lines speak of
  for (std::string line; std::getline(lines, line);) {
    std::smatch match, parts;
    if (std::regex_search(line, match, entry)) {
      const std::string full = demangled(match[1]);
      known = std::regex_search(full, parts, name);
      if (known) all.push_back({parts[1], parts[3], std::stoi(parts[2]), match[2], {}, 0});
    } else if (known && line.find("bytes stack frame") != std::string::npos) {
      all.back().thread.local_bytes = number_before(line, "bytes stack frame");
    } else if (known && line.find("registers") != std::string::npos) {
      const int used = number_before(line, "registers");
      all.back().thread.registers = (used + kUnits - 1) / kUnits * kUnits;
      all.back().static_shared_bytes = number_before(line, "bytes smem");
    }
  }
  return all;
}

std::vector<std::string> differences(const std::vector<ResourceUsage>& kernels,
                                     Declaration declared) {
  std::map<std::pair<std::string, int>, ThreadMemory> most;
  for (const ResourceUsage& usage : kernels) {
    if (usage.policy != "Uncounted") continue;
    ThreadMemory& memory = most[{usage.kernel, usage.columns}];
    memory.registers = std::max(memory.registers, usage.thread.registers);
    memory.local_bytes = std::max(memory.local_bytes, usage.thread.local_bytes);
  }
  std::vector<std::string> lines;
  const auto text = [](const ThreadMemory& memory) {
    return std::to_string(memory.registers) + " registers, " + std::to_string(memory.local_bytes) +
           " local bytes";
  };
  for (const auto& [key, memory] : most) {
    const auto& [kernel, columns] = key;
    std::string wanted;
    try {
      const ThreadMemory promised = declared(kernel, columns);
      if (promised == memory) continue;
      wanted = "declared are " + text(promised);
    } catch (const InvalidProblem&) {
      wanted = "nothing is declared";
    }
    lines.push_back(kernel + "<" + std::to_string(columns) + ">: " + text(memory) + "; " + wanted);
  }
  return lines;
}

}  // namespace attest::gpu::cuda
