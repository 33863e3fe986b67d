#include "certify/audit/voucher.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "certify/audit/seal.hpp"
#include "certify/audit/verification.hpp"
#include "certify/report/certificate_fields.hpp"
#include "certify/report/kernel_names.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

bool holds(const json& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool checked(const json& certificate, const VouchedKernel& kernel) {
  const Verification found = verify(certificate, {});
  std::vector<std::string> names;
  for (const json& one : found.kernels) names.push_back(one.at("kernel"));
  const auto same = same_kernels(names, {kernel.name});
  if (same.empty()) return false;
  const std::string& name = same.begin()->second;
  const auto refuse = [&](const std::string& why) {
    throw InvalidProblem("certificate of '" + name + "': " + why +
                         "; certify again, or leave --certificate out");
  };
  if (!found.whole) refuse(seal_fault(certificate));
  const json& entry = found.kernels[static_cast<std::size_t>(
      std::find(names.begin(), names.end(), name) - names.begin())];
  const json digest = digest_of(certificate, entry);
  if (digest != kernel.file_sha256) {
    refuse("is of another file, SHA-256 " +
           (digest.is_string() ? digest.get<std::string>() : "unknown") + ", not " +
           kernel.file_sha256);
  }
  const auto verdict = entry.at("verdict").get<std::string>();
  if (verdict != "certified") refuse("says '" + verdict + "', not 'certified'");
  for (const std::string& direction : kernel.directions) {
    if (!holds(entry.at("description").at("directions"), direction)) {
      refuse("has no " + direction + " pass");
    }
  }
  const json& exercised = entry.at("coverage").at("exercised");
  for (const std::string& word : kernel.uses) {
    if (exercised.value(word, 0) == 0)
      refuse("has no check of '" + word + "', which the problem has");
  }
  return true;
}

}  // namespace

bool vouches(const json& certificate, const VouchedKernel& kernel) {
  return reading_certificate([&] { return checked(certificate, kernel); });
}

}  // namespace attest::certify
