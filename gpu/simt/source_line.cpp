#include "gpu/simt/source_line.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

namespace attest::simt {
namespace {

// "/path/flash2.cuh:17 (discriminator 3)", or "??:0".
CodeLine parse(std::string_view text) {
  text = text.substr(0, text.rfind(" (discriminator"));
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.substr(0, 2) == "??") return {};
  return {std::string(text.substr(0, colon)),
          std::atoi(std::string(text.substr(colon + 1)).c_str())};
}

// The emulation's headers, whose folder this is, and the library's.
bool is_helper(const std::string& file) {
  const std::string folder = file.substr(0, file.rfind('/'));
  constexpr std::string_view kOwn = "gpu/simt";
  return folder.find("/include/c++/") != std::string::npos ||
         (folder.size() >= kOwn.size() &&
          folder.compare(folder.size() - kOwn.size(), kOwn.size(), kOwn) == 0);
}

// For a shell.
std::string shell_quoted(const std::string& path) {
  std::string text = "'";
  for (const char letter : path) {
    if (letter == '\'') {
      text += "'\\''";
    } else {
      text += letter;
    }
  }
  return text + "'";
}

CodeLine ask(const void* address) {
  Dl_info module{};
  link_map* map = nullptr;
  if (dladdr1(address, &module, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 ||
      map == nullptr) {
    return {};
  }
  std::string path = map->l_name;
  if (path.empty()) {  // the program itself
    std::array<char, PATH_MAX> target{};
    if (realpath("/proc/self/exe", target.data()) != nullptr) path = target.data();
  }
  // The call lies before the address that it returns to. A program with a fixed place has no base.
  const auto offset = reinterpret_cast<std::uintptr_t>(address) - map->l_addr - 1;
  std::array<char, 32> hexadecimal{};
  std::snprintf(hexadecimal.data(), hexadecimal.size(), "0x%llx",
                static_cast<unsigned long long>(offset));
  const std::string command =
      "addr2line -i -e " + shell_quoted(path) + " " + hexadecimal.data() + " 2>/dev/null";
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string answer;
  std::array<char, 4096> part{};
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) answer += part.data();
  pclose(pipe);
  return kernel_line(answer);
}

}  // namespace

CodeLine kernel_line(std::string_view answer) {
  CodeLine innermost;
  for (std::size_t begin = 0; begin < answer.size();) {
    const std::size_t end = std::min(answer.find('\n', begin), answer.size());
    CodeLine frame = parse(answer.substr(begin, end - begin));
    if (begin == 0) innermost = frame;
    if (frame.line != 0 && !is_helper(frame.file)) return frame;
    begin = end + 1;
  }
  return innermost;
}

SourceLine line_of_code(const void* return_address) {
  static std::mutex mutex;
  static std::map<const void*, CodeLine> known;  // its strings outlive the diagnoses
  const std::lock_guard lock(mutex);
  const auto [entry, inserted] = known.try_emplace(return_address);
  if (inserted) entry->second = ask(return_address);
  return {entry->second.file.c_str(), entry->second.line};
}

}  // namespace attest::simt
