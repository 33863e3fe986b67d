#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace attest {

/// Parses JSON in which no object has a key twice, an ambiguity that JSON leaves open. Calls
/// `refuse`, which must throw, with "is not JSON: …", "has 'KEY' twice" or "is nested more than 64
/// deep".
/// [core/mask/sparsity/pattern_file_test "in JSON", certify/report/safetensors_test "bad files"]
nlohmann::json parse_strict_json(std::string_view text,
                                 const std::function<void(const std::string&)>& refuse);

}  // namespace attest
