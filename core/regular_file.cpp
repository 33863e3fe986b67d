#include "core/regular_file.hpp"

#include <filesystem>

#include "core/error.hpp"

namespace attest {

std::ifstream open_regular_file(const std::string& what, const std::string& path,
                                const std::string& expected) {
  std::error_code ignored;
  const auto type = std::filesystem::status(path, ignored).type();
  if (type == std::filesystem::file_type::directory) {
    throw InvalidProblem(what + ": '" + path + "' is a directory; pass " + expected);
  }
  if (std::filesystem::exists(path, ignored) && type != std::filesystem::file_type::regular) {
    throw InvalidProblem(what + ": '" + path + "' is not a regular file; pass " + expected);
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InvalidProblem(what + ": cannot read file '" + path + "'");
  return file;
}

}  // namespace attest
