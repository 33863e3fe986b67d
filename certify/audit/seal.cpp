#include "certify/audit/seal.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "certify/digest.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

constexpr const char* kEpoch = "SOURCE_DATE_EPOCH";

std::time_t told_time(std::string_view text) {
  constexpr std::int64_t kYear10000 = 253402300800;
  std::int64_t seconds = 0;
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool whole = error == std::errc() && stopped == text.data() + text.size();
  if (!whole || seconds < 0 || seconds >= kYear10000) {
    throw InvalidProblem(
        fmt::format("{}: '{}' is not a whole number of seconds since 1970, before the year 10000; "
                    "set it to `git log -1 --format=%ct`, or unset it",
                    kEpoch, text));
  }
  return static_cast<std::time_t>(seconds);
}

}  // namespace

std::string seal_of(const nlohmann::json& certificate) {
  nlohmann::json object = certificate;
  object.erase("sha256");
  return sha256(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string seal_fault(const nlohmann::json& certificate) {
  const auto found = certificate.find("sha256");
  if (found == certificate.end()) {
    return "has no SHA-256 of its own: it was changed, or an older version of attest made it";
  }
  return *found == seal_of(certificate) ? "" : "was changed after it was made: its SHA-256 differs";
}

void seal(nlohmann::json& certificate) { certificate["sha256"] = seal_of(certificate); }

std::string certificate_date() {
  const char* const told = std::getenv(kEpoch);
  const std::time_t time = told == nullptr ? std::time(nullptr) : told_time(told);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(time));
}

}  // namespace attest::certify
