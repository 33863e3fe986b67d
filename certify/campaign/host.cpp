#include "certify/campaign/host.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "certify/digest.hpp"

// In programs and shared libraries alone: tests are not linked again at each commit.
extern "C" __attribute__((weak)) const char* attest_commit();

namespace attest::certify {
namespace {

// Returns the file that holds this code: the program, or a shared library in another's process.
std::string own_file() {
  static const char here = 0;
  Dl_info info{};
  link_map* object = nullptr;
  void** const into = reinterpret_cast<void**>(&object);
  const bool found = dladdr1(&here, &info, into, RTLD_DL_LINKMAP) != 0;
  return found && *object->l_name != '\0' ? object->l_name : "/proc/self/exe";
}

bool changes_arithmetic(const std::string& flag) {
  constexpr std::array<const char*, 9> kPrefixes{"sse",  "avx",   "fma", "f16c", "amx",
                                                 "fphp", "asimd", "sve", "bf16"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](const char* prefix) { return flag.rfind(prefix, 0) == 0; });
}

std::string& told_cpu_target() {
  static std::string name;
  return name;
}

}  // namespace

void tell_cpu_target(const std::string& name) { told_cpu_target() = name; }

Processor parse_cpuinfo(const std::string& text) {
  Processor processor;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const std::string value = colon + 2 < line.size() ? line.substr(colon + 2) : "";
    if (key == "model name" && processor.name.empty()) processor.name = value;
    if ((key != "flags" && key != "Features") || !processor.extensions.empty()) continue;
    std::istringstream words(value);
    std::copy_if(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>(),
                 std::back_inserter(processor.extensions), changes_arithmetic);
  }
  std::sort(processor.extensions.begin(), processor.extensions.end());
  return processor;
}

nlohmann::json host_json() {
  utsname system{};
  uname(&system);
  std::ifstream file("/proc/cpuinfo");
  const Processor processor =
      parse_cpuinfo({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
  return {{"system", system.sysname},
          {"machine", system.machine},
          {"processor", processor.name},
          {"extensions", processor.extensions},
          {"cpu_target",
           told_cpu_target().empty() ? nlohmann::json(nullptr) : nlohmann::json(told_cpu_target())},
          {"threads", std::thread::hardware_concurrency()}};
}

std::optional<OtherKind> other_kind(const nlohmann::json& one, const nlohmann::json& other) {
  const auto word = [](const nlohmann::json& host, const char* key) -> std::string {
    const bool named = host.is_object() && host.contains(key) && host.at(key).is_string();
    return named ? host.at(key).get<std::string>() : "none";
  };
  for (const char* const key : {"machine", "cpu_target"}) {
    if (word(one, key) != word(other, key)) return OtherKind{key, word(one, key), word(other, key)};
  }
  return std::nullopt;
}

std::string version() { return ATTEST_BUILD_VERSION; }

const std::string& program_sha256() {
  static const std::string digest = sha256_of_file(own_file());
  return digest;
}

std::string commit() { return attest_commit == nullptr ? "" : attest_commit(); }

nlohmann::json build_json() {
  return {{"version", version()},
          {"commit", commit().empty() ? nlohmann::json(nullptr) : nlohmann::json(commit())},
          {"program_sha256", program_sha256()},
          {"compiler", __VERSION__},
          {"type", ATTEST_BUILD_TYPE},
          {"flags", ATTEST_BUILD_FLAGS}};
}

}  // namespace attest::certify
