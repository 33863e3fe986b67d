#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/testing/catch.hpp"

namespace attest::certify {

/// Checks that every field of the object is described and every required one is there, all the way
/// down.
inline void check_against(const nlohmann::json& part, const nlohmann::json& schema) {
  if (part.is_array()) {
    for (const auto& item : part) check_against(item, schema.at("items"));
  }
  if (!part.is_object()) return;
  for (const auto& field : schema.at("required")) CHECK(part.contains(field.get<std::string>()));
  for (const auto& [key, value] : part.items()) {
    INFO(key);
    REQUIRE(schema.at("properties").contains(key));
    check_against(value, schema.at("properties").at(key));
  }
}

}  // namespace attest::certify
