#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

namespace attest::certify::worker {

/// The files of code in this process, to see which ones a call loads: a kernel that has another
/// library do its work is as right as that one is, but who reads its certificate should know.
/// [certify/worker/library/library_test "a library that calls another"]
class LoadedFiles {
 public:
  /// As they are now.
  LoadedFiles();

  /// Appends the names of those that came since, each with a line's end, to a text of `size` bytes.
  /// Returns false where some do not fit, which are left out. Costs a look at a counter where
  /// nothing was loaded.  [certify/worker/library/library_test "names of files that do not fit"]
  bool append_new(char* text, std::size_t size);

 private:
  std::uint64_t loads_ = 0;
  std::set<std::string> known_;
};

}  // namespace attest::certify::worker
