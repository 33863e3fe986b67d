#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

/// Enums of attest_kernel.h as its text has them, for the tests that hold tables to it.
namespace attest::testing {

/// A value and its name.
using Enumerator = std::pair<std::uint32_t, std::string>;

/// Returns the text of attest_kernel.h.
std::string abi_header();

/// Returns the text with `was`, which it has once, replaced by `is`.
std::string edited(std::string text, const std::string& was, const std::string& is);

/// Returns the enumerators of the enum that begins with `opening`, up to its brace, as
/// `ATTEST_NAME = VALUE`, `= 1 << BIT` or `= 1u << BIT`. One that is written otherwise throws.
/// [core/features/score_features_test "each bit of the claims"]
std::multiset<Enumerator> enumerators(const std::string& header, const std::string& opening);

/// Returns the names that are in one of both alone, or there with another value.
std::set<std::string> differing(const std::multiset<Enumerator>& one,
                                const std::multiset<Enumerator>& other);

}  // namespace attest::testing
