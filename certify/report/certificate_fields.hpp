#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/error.hpp"

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

}  // namespace attest::certify
