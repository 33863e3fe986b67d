#pragma once

#include <filesystem>
#include <string>

namespace attest::certify {

/// A folder of its own in that for temporary files, gone with all that is in it. Throws
/// InvalidProblem where none can be made.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace attest::certify
