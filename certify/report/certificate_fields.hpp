#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.hpp"
#include "core/text/thousands.hpp"

namespace attest::certify {

/// Calls a function that reads fields of a certificate, which anybody may have written. Throws
/// InvalidProblem where a field is missing or of another type.
/// [certify/fuzz/parsers_test "the corpus"]
template <class Function>
auto reading_certificate(Function&& function) {
  try {
    return function();
  } catch (const nlohmann::json::exception& error) {
    throw InvalidProblem(std::string("certificate: not as attest-certificate-1 says: ") +
                         error.what());
  }
}

/// Returns a count as people read it, its thousands apart; as JSON what is no whole number.
inline std::string count_text(const nlohmann::json& count) {
  return count.is_number_integer() ? thousands(count.get<std::int64_t>()) : count.dump();
}

/// Returns a kernel's verdict as people read it: laws are violated, kernels refused.
inline std::string verdict_words(const std::string& verdict) {
  if (verdict == "law_holds") return "law holds";
  if (verdict == "mask_holds") return "holds on the mask";
  if (verdict == "shard_passed") return "shard passed";
  return verdict == "violated" ? "refused" : verdict;
}

/// Returns the verdict of a kernel of a certificate as people read it; "no check ran" where none
/// did.  [certify/report/html/html_test "no check ran"]
inline std::string verdict_of(const nlohmann::json& kernel) {
  const auto verdict = kernel.at("verdict").get<std::string>();
  const bool none = kernel.at("checks").value("made", 1.0) == 0;  // older ones do not say
  return verdict == "unsupported" && none ? "no check ran" : verdict_words(verdict);
}

/// Returns how a finding stands with the list of known failures, "" where it fails the run.
inline std::string standing_of(bool known, bool undecided) {
  if (known) return "known failure: listed, does not fail the run";
  return undecided ? "perhaps of a known failure's cause: the whole campaign tells" : "";
}

/// The same of a finding in a certificate; older ones do not say.
inline std::string standing_of(const nlohmann::json& finding) {
  return standing_of(finding.value("known", false), finding.value("undecided", false));
}

/// Returns "shard 1/2" for the certificate of a shard, else "".
inline std::string shard_text(const nlohmann::json& certificate) {
  const nlohmann::json shard = certificate.value("shard", nlohmann::json());
  return shard.is_string() ? "shard " + shard.get<std::string>() : "";
}

/// Returns the names of a list with ", " between them.
inline std::string names_text(const nlohmann::json& names) {
  std::string text;
  for (const nlohmann::json& name : names) {
    text += (text.empty() ? "" : ", ") + name.get<std::string>();
  }
  return text;
}

/// Returns "; shards on A, B too" for the certificate of shards that ran on other processors than
/// the one that merged them, else "".  [certify/report/html/html_test "processors"]
inline std::string processors_text(const nlohmann::json& host) {
  nlohmann::json others = nlohmann::json::array();
  for (const nlohmann::json& name : host.value("processors", nlohmann::json::array())) {
    if (name != host.at("processor")) others.push_back(name);
  }
  return others.empty() ? "" : "; shards on " + names_text(others) + " too";
}

}  // namespace attest::certify
