#pragma once

#include <cstdint>
#include <utility>
#include <vector>

/// Words of the bits of attest_description.features.
namespace attest {

/// Returns the bits and their words, the features of the scores among them.
const std::vector<std::pair<std::uint32_t, const char*>>& feature_words();

/// Returns all bits that have a word.
std::uint32_t known_features();

}  // namespace attest
