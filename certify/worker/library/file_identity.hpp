#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace attest::certify::worker {

/// Identity of a file as it was last written: a rename over it, a write into it and a new time of
/// writing each make another. Costs one system call, however long the file is.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0;
  std::int64_t size = 0;                      // bytes
  std::int64_t seconds = 0, nanoseconds = 0;  // when it was written

  bool operator==(const FileIdentity& other) const = default;
};

/// Returns the identity of the file that a path leads to; nothing where there is none.
/// [certify/worker/library/library_test "a library that is written again"]
std::optional<FileIdentity> identity_of_file(const std::string& path);

}  // namespace attest::certify::worker
