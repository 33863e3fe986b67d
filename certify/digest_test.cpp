#include "certify/digest.hpp"

#include <cstdio>

#include "certify/files.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

// Source: FIPS 180-4, the examples of NIST's validation of SHA-256 for messages of bytes.
TEST_CASE("digests are those of the standard", "[certificate]") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_CASE("a digest of a file is that of its bytes", "[certificate]") {
  const std::string path = "digest_test_file";
  write_file(path, std::string("bytes\0more", 10));
  CHECK(sha256_of_file(path) == sha256(std::string("bytes\0more", 10)));
  CHECK(sha256_of_file(path) != sha256(std::string("bytes\0", 6)));
  std::remove(path.c_str());
  CHECK_THROWS_WITH(sha256_of_file(path), Catch::Contains("No such file"));
}

}  // namespace
}  // namespace attest::certify
