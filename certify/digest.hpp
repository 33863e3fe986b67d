#pragma once

#include <string>
#include <string_view>

namespace attest::certify {

/// Returns the SHA-256 of the bytes as 64 hexadecimal digits, as `sha256sum` prints it.
/// [certify/digest_test] Source: FIPS 180-4.
std::string sha256(std::string_view bytes);

/// Returns the SHA-256 of a file's bytes. Throws InvalidProblem when it cannot be read. Cost: 0.1
/// to 0.5 s for 100 MB.  [certify/digest_test]
std::string sha256_of_file(const std::string& path);

}  // namespace attest::certify
