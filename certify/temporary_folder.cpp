#include "certify/temporary_folder.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace attest::certify {

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "attest-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    throw InvalidProblem("cannot make a folder in " + pattern + ": " + std::strerror(errno));
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace attest::certify
