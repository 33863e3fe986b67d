#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace attest::certify {

/// Reads a certificate. Throws InvalidProblem, naming the file, when it cannot be read, is no JSON
/// or not of the schema attest-certificate-1.  [certify/report/comparison_test "bad certificates"]
nlohmann::json read_certificate(const std::string& path);

/// Meaning of a difference between two certificates for somebody who upgrades.
enum class ChangeKind : std::uint8_t { regression, improvement, note };

struct Change {
  ChangeKind kind = ChangeKind::note;
  std::string kernel, what;
  std::string reproduce = "";  // the command that fails, of a law that fails now
};

/// The differences from `before` to `after`, regressions first, then improvements, then notes; each
/// in the order of the kernels. Regressions: a graver verdict, a kernel that is gone, a law that
/// now fails (with those that fail of its cause) or counts nowhere, a claim that is gone or no
/// longer exercised, a problem newly refused, more words moved for the same problem. The opposites
/// are improvements; a worst error over bound that doubled or halved, another tier or seed are
/// notes. Timings are not compared. A kernel whose library lies in another folder or has another
/// name is compared with that of its name (certify/report/kernel_names.hpp), which is a note.
/// Requires: objects of the schema attest-certificate-1. Else throws InvalidProblem.
/// [certify/report/comparison_test "regressions come first"]
std::vector<Change> compare_certificates(const nlohmann::json& before, const nlohmann::json& after);

/// 1 when there is a regression, else 0.
int exit_code(const std::vector<Change>& changes);

/// Fields: schema (attest-comparison-1), regressions, improvements, notes (kernel, what, and
/// reproduce of a law that fails now), exit_code.
nlohmann::json comparison_json(const std::vector<Change>& changes);

}  // namespace attest::certify
