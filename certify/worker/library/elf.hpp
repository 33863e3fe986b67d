#pragma once

#include <string>
#include <vector>

namespace attest::certify::worker {

/// Throws InvalidProblem unless `path` is a shared library for this machine, as far as its ELF
/// header tells: it exists, is a regular file, is ELF, has this word size, byte order and
/// instruction set, is no program, and is not cut off. Nothing of it is run.
/// [certify/worker/library/library_test "not a library"]
void require_library(const std::string& path);

/// Names that a shared library has others define, as far as its sections tell.
/// [certify/worker/library/emulated_library_test]
std::vector<std::string> undefined_symbols(const std::string& path);

/// Sonames of the libraries that a shared library is linked with, as far as its sections tell.
/// [certify/worker/library/emulated_library_test "a library of CUDA 12"]
std::vector<std::string> needed_libraries(const std::string& path);

}  // namespace attest::certify::worker
