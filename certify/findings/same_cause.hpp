#pragma once

#include <set>
#include <string>

#include "certify/campaign/campaign.hpp"

/// Which findings are one: a mistake breaks many laws.
namespace attest::certify {

/// Returns the output that a comparison is of: dV of "sum of V o dV".
std::string output_of(const std::string& comparison);

/// Returns the outputs that a finding refuses: its law on the smallest case, or where it has none
/// its message.
std::set<std::string> refused_outputs(const attest_kernel& kernel, const Finding& finding,
                                      bool is_smallest);

/// The outputs that a result refuses: those of the comparisons that fail and those that its message
/// names.  [certify/findings/same_cause_test "outputs that a result refuses"]
std::set<std::string> refused_outputs(const proptest::LawResult& result);

/// Tells whether the law of `other` fails, with its verdict, on the smallest case of `head` too,
/// and in an output that the law of `head` refuses there. `head` must have been shrunk.
/// [certify/findings/same_cause_test "one mistake is one finding"]
bool same_cause(const attest_kernel& kernel, const Finding& head, const Finding& other);

/// Tells whether both show one known mistake, or one way to game the judge.
/// [certify/findings/same_cause_test "a mistake in both directions"]
bool same_mistake(const Finding& head, const Finding& other);

}  // namespace attest::certify
