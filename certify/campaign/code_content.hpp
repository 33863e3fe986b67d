#pragma once

#include <string>
#include <vector>

#include "core/abi/attest_kernel.h"

namespace attest::certify {

/// Returns the SHA-256 of the file of a kernel's code (worker::library_of); "" for a kernel that is
/// built in. Throws InvalidProblem where that is no longer the file that was loaded first.
/// [certify/worker/library/library_test "a library that is written again"]
std::string content_of_code(const attest_kernel& kernel);

/// A library that a kernel's is linked with, and its SHA-256.
struct NeededFile {
  std::string path, sha256;
};

/// Returns those of worker::needed_by. Throws as content_of_code.
/// [certify/worker/library/library_test "is linked with"]
std::vector<NeededFile> needed_content(const attest_kernel& kernel);

}  // namespace attest::certify
