#pragma once

#include <string>

#include "proptest/values/generator.hpp"

namespace attest::certify {

/// Reads "smoke", "fast" or "full". Throws InvalidProblem with the nearest name.
/// [python/api/campaign_test "options that make no sense"]
proptest::Tier parse_tier(const std::string& text);

}  // namespace attest::certify
