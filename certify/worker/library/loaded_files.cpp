#include "certify/worker/library/loaded_files.hpp"

#include <link.h>

#include <cstring>

namespace attest::certify::worker {
namespace {

std::uint64_t loads() {
  std::uint64_t count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* file, std::size_t, void* into) {
        *static_cast<std::uint64_t*>(into) = file->dlpi_adds;
        return 1;  // every file has the same counter
      },
      &count);
  return count;
}

std::set<std::string> names() {
  std::set<std::string> all;
  dl_iterate_phdr(
      [](dl_phdr_info* file, std::size_t, void* into) {
        if (file->dlpi_name != nullptr && *file->dlpi_name != '\0') {
          static_cast<std::set<std::string>*>(into)->insert(file->dlpi_name);
        }
        return 0;
      },
      &all);
  return all;
}

}  // namespace

LoadedFiles::LoadedFiles() : loads_(loads()), known_(names()) {}

bool LoadedFiles::append_new(char* text, std::size_t size) {
  const std::uint64_t now = loads();
  if (now == loads_) return true;
  loads_ = now;
  bool all_fit = true;
  for (const std::string& name : names()) {
    const std::size_t used = std::strlen(text);
    if (!known_.insert(name).second) continue;
    if (used + name.size() + 2 > size) {
      all_fit = false;
      continue;
    }
    std::memcpy(text + used, name.c_str(), name.size());
    std::strcpy(text + used + name.size(), "\n");
  }
  return all_fit;
}

}  // namespace attest::certify::worker
