#include "certify/audit/verification.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "certify/audit/seal.hpp"
#include "certify/digest.hpp"
#include "certify/report/certificate_fields.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

std::vector<VerifiedNeed> needed_of(const std::vector<json>& kernels) {
  std::vector<VerifiedNeed> needed;
  for (const json& kernel : kernels) {
    for (const json& one : kernel.value("needed", json::array())) {
      VerifiedNeed need{one.at("file"), one.at("sha256"), ""};
      std::error_code none;  // a device or pipe that it names has no end
      const bool is_file = std::filesystem::is_regular_file(need.path, none);
      if (is_file) need.digest = sha256_of_file(need.path);
      needed.push_back(std::move(need));
    }
  }
  return needed;
}

Verification verified(const json& certificate, const std::vector<std::string>& files) {
  Verification found;
  found.whole = seal_fault(certificate).empty();
  std::vector<bool> held(certificate.at("kernels").size(), files.empty());
  for (const std::string& path : files) {
    VerifiedFile file{path, sha256_of_file(path), {}};
    for (std::size_t k = 0; k < held.size(); ++k) {
      const json& kernel = certificate.at("kernels")[k];
      if (digest_of(certificate, kernel) != file.sha256) continue;
      file.kernels.push_back(kernel.at("kernel"));
      held[k] = true;
    }
    found.files.push_back(std::move(file));
  }
  for (std::size_t k = 0; k < held.size(); ++k) {
    if (held[k]) found.kernels.push_back(certificate.at("kernels")[k]);
  }
  if (!files.empty()) found.needed = needed_of(found.kernels);
  const bool all = std::all_of(found.files.begin(), found.files.end(),
                               [](const VerifiedFile& file) { return !file.kernels.empty(); });
  const bool certified =
      !found.kernels.empty() &&
      std::all_of(found.kernels.begin(), found.kernels.end(),
                  [](const json& kernel) { return kernel.at("verdict") == "certified"; });
  const bool other = std::any_of(found.needed.begin(), found.needed.end(),
                                 [](const VerifiedNeed& one) { return one.differs(); });
  found.match = !found.whole || !all || other ? Match::differs
                : certified                   ? Match::matches
                                              : Match::not_certified;
  return found;
}

}  // namespace

json digest_of(const json& certificate, const json& kernel) {
  const json library = kernel.at("library_sha256");
  if (!library.is_null() || kernel.contains("not_seen")) return library;
  return certificate.at("build").at("program_sha256");
}

std::string_view name(Match match) {
  switch (match) {
    case Match::matches:
      return "matches";
    case Match::differs:
      return "differs";
    case Match::not_certified:
      break;
  }
  return "not_certified";
}

int exit_code(Match match) {
  constexpr int kDiffers = 1, kNotCertified = 3;
  return match == Match::matches ? 0 : match == Match::differs ? kDiffers : kNotCertified;
}

Verification verify(const json& certificate, const std::vector<std::string>& files) {
  if (!certificate.contains("sha256")) {
    throw InvalidProblem("certificate: " + seal_fault(certificate) + "; certify again");
  }
  return reading_certificate([&] { return verified(certificate, files); });
}

json verification_json(const json& certificate, const Verification& found) {
  return reading_certificate([&]() -> json {
    json files = json::array(), kernels = json::array(), needed = json::array();
    for (const VerifiedNeed& one : found.needed) {
      needed.push_back({{"file", one.path},
                        {"sha256", one.sha256},
                        {"found", one.digest.empty() ? json(nullptr) : json(one.digest)}});
    }
    for (const VerifiedFile& file : found.files) {
      files.push_back({{"path", file.path}, {"sha256", file.sha256}, {"kernels", file.kernels}});
    }
    for (const json& kernel : found.kernels) {
      kernels.push_back({{"kernel", kernel.at("kernel")},
                         {"verdict", kernel.at("verdict")},
                         {"sha256", digest_of(certificate, kernel)},
                         {"contract", kernel.at("contract")},
                         {"sizes", kernel.at("coverage").at("sizes")}});
    }
    return {{"schema", "attest-verification-1"},
            {"certificate_sha256", certificate.at("sha256")},
            {"whole", found.whole},
            {"date", certificate.at("timings").at("date")},
            {"build", certificate.at("build")},
            {"host", certificate.at("host")},
            {"files", files},
            {"kernels", kernels},
            {"needed", needed},
            {"match", name(found.match)},
            {"exit_code", exit_code(found.match)}};
  });
}

}  // namespace attest::certify
