#include "certify/worker/library/file_identity.hpp"

#include <sys/stat.h>

namespace attest::certify::worker {

std::optional<FileIdentity> identity_of_file(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileIdentity{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                      status.st_mtim.tv_nsec};
}

}  // namespace attest::certify::worker
