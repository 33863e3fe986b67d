#include "gpu/device/measure/resource_usage.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>
#include <sstream>

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

// "void a::kernel<1, a::Uncounted, float>(a::Arguments)" as kernel and policy; the policy is empty
// where there is none.
ResourceUsage kernel_in(std::string text) {
  static const std::regex scopes(R"((\w+|\(anonymous namespace\))::)"),
      policies(R"(, (Uncounted|Counted)\b|\b(Uncounted|Counted), |<(Uncounted|Counted)>)");
  text = std::regex_replace(text, scopes, "");
  text = std::regex_replace(text, std::regex("> (?=>)"), ">");
  text = std::regex_replace(text, std::regex("^void "), "");
  text = std::regex_replace(text, std::regex(R"(([>\w])\(.*$)"), "$1");
  std::smatch match;
  if (!std::regex_search(text, match, policies)) return {};
  ResourceUsage usage;
  for (std::size_t k = 1; k < match.size(); ++k) usage.policy += match[k];
  usage.kernel = match.prefix().str() + match.suffix().str();
  return usage;
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
  constexpr int kUnits = 8;
  std::vector<ResourceUsage> all;
  std::istringstream lines(text);
  bool known = false;  // the kernel that lines speak of
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, entry)) {
      ResourceUsage usage = kernel_in(demangled(match[1]));
      usage.architecture = match[2];
      known = !usage.policy.empty();
      if (known) all.push_back(usage);
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
  std::map<std::string, ThreadMemory> most;
  for (const ResourceUsage& usage : kernels) {
    if (usage.policy != "Uncounted") continue;
    ThreadMemory& memory = most[usage.kernel];
    memory.registers = std::max(memory.registers, usage.thread.registers);
    memory.local_bytes = std::max(memory.local_bytes, usage.thread.local_bytes);
  }
  std::vector<std::string> lines;
  const auto text = [](const ThreadMemory& memory) {
    return std::to_string(memory.registers) + " registers, " + std::to_string(memory.local_bytes) +
           " local bytes";
  };
  for (const auto& [kernel, memory] : most) {
    std::string wanted;
    try {
      const ThreadMemory promised = declared(kernel);
      if (promised == memory) continue;
      wanted = "declared are " + text(promised);
    } catch (const InvalidProblem&) {
      wanted = "nothing is declared";
    }
    lines.push_back(kernel + ": " + text(memory) + "; " + wanted);
  }
  return lines;
}

}  // namespace attest::gpu::cuda
