#include "gpu/simt/source_line.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace attest::simt {
namespace {

struct Line {
  std::string file;
  int line = 0;
};

// "/path/flash2.cuh:17 (discriminator 3)", or "??:0".
Line parse(const std::string& text) {
  const std::size_t colon = text.rfind(':', text.find(' '));
  if (colon == std::string::npos || text.compare(0, 2, "??") == 0) return {};
  return {text.substr(0, colon), std::atoi(text.c_str() + colon + 1)};
}

Line ask(const void* address) {
  Dl_info module{};
  if (dladdr(address, &module) == 0 || module.dli_fname == nullptr) return {};
  std::string path = module.dli_fname;
  if (path.find('\'') != std::string::npos) return {};
  if (path.find('/') == std::string::npos) path = "/proc/self/exe";
  // The call lies before the address that it returns to.
  const auto offset =
      static_cast<const char*>(address) - static_cast<const char*>(module.dli_fbase) - 1;
  std::array<char, 64> hexadecimal{};
  std::snprintf(hexadecimal.data(), hexadecimal.size(), "0x%llx",
                static_cast<unsigned long long>(offset));
  if (path == "/proc/self/exe") {
    std::array<char, 4096> target{};
    if (realpath("/proc/self/exe", target.data()) != nullptr) path = target.data();
  }
  const std::string command = "addr2line -e '" + path + "' " + hexadecimal.data() + " 2>/dev/null";
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::array<char, 4096> answer{};
  const bool answered = std::fgets(answer.data(), answer.size(), pipe) != nullptr;
  pclose(pipe);
  return answered ? parse(answer.data()) : Line{};
}

}  // namespace

SourceLine line_of_code(const void* return_address) {
  static std::mutex mutex;
  static std::map<const void*, Line> known;  // its strings outlive the diagnoses
  const std::lock_guard lock(mutex);
  const auto [entry, inserted] = known.try_emplace(return_address);
  if (inserted) entry->second = ask(return_address);
  return {entry->second.file.c_str(), entry->second.line};
}

}  // namespace attest::simt
