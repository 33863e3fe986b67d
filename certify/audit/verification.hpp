#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace attest::certify {

/// Answer of a verification. `not_certified`: the files are those, but a kernel in them has another
/// verdict than certified.
enum class Match : std::uint8_t { matches, differs, not_certified };

std::string_view name(Match match);

/// A file held against a certificate: its digest, and the kernels of the certificate that ran from
/// a file of that digest.
struct VerifiedFile {
  std::string path, sha256;
  std::vector<std::string> kernels;
};

/// A library that a kernel's is linked with: `digest` of the file that lies there now, empty where
/// there is none.
struct VerifiedNeed {
  std::string path, sha256, digest;

  bool differs() const { return !digest.empty() && digest != sha256; }
};

struct Verification {
  Match match = Match::matches;
  bool whole = true;  // the certificate says its own SHA-256
  std::vector<VerifiedFile> files;
  std::vector<VerifiedNeed> needed;     // by kernels of the files
  std::vector<nlohmann::json> kernels;  // of the files; every one of the certificate without files
};

/// Holds files against a certificate. It `differs` where the certificate was changed after it was
/// made, a file is of no kernel in it, or a library that a kernel's is linked with lies where it
/// did with other bytes. A file may be a library, the file of a function in Python, or the program,
/// which holds the built-in kernels. Throws InvalidProblem for a file that cannot be read, and for
/// a certificate that is too old to have digests or not as its schema says.
/// [certify/audit/verification_test]
Verification verify(const nlohmann::json& certificate, const std::vector<std::string>& files);

/// Returns the SHA-256 of the file that holds a kernel of the certificate: its library, else the
/// program; null for a function in Python that was called in the certifier's process.
nlohmann::json digest_of(const nlohmann::json& certificate, const nlohmann::json& kernel);

/// 0 matches, 1 differs, 3 not certified.
int exit_code(Match match);

/// Fields: certify/schemas/verification.schema.json.
nlohmann::json verification_json(const nlohmann::json& certificate, const Verification& found);

}  // namespace attest::certify
