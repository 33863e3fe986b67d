#include "certify/digest.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "certify/files.hpp"
#include "core/error.hpp"

namespace attest::certify {

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  // Fails without memory, and where the system's policy leaves the function out.
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
    throw InternalError("OpenSSL computes no SHA-256 here");
  }
  std::string text;
  for (unsigned int k = 0; k < length; ++k) text += fmt::format("{:02x}", digest[k]);
  return text;
}

std::string sha256_of_file(const std::string& path) { return sha256(read_file(path)); }

}  // namespace attest::certify
