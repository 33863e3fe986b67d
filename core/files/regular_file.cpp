#include "core/files/regular_file.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <new>

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

std::string read_regular_file(const std::string& what, const std::string& path,
                              const std::string& expected) {
  std::ifstream file = open_regular_file(what, path, expected);
  const auto refuse = [&](const std::string& why) {
    throw InvalidProblem(what + ": file '" + path + "' " + why);
  };
  constexpr std::uintmax_t kMost = std::uintmax_t{1} << 32;
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) refuse("cannot be read: " + error.message());
  if (size > kMost) refuse("has " + std::to_string(size) + " bytes; files of up to 2^32 are read");
  std::string bytes;
  try {
    bytes.resize(size);
  } catch (const std::bad_alloc&) {
    refuse("has " + std::to_string(size) + " bytes, more than there is memory for");
  }
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) {
    refuse(std::string("cannot be read: ") + std::strerror(errno));
  }
  return bytes;
}

}  // namespace attest
