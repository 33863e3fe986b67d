#pragma once

#include <string>

#include "proptest/judge/run.hpp"

/// How a case that is checked before another one is spelled on the command line.
namespace attest::certify {

/// "PROBLEM values=V seed=S threads=T", without the words in which it equals `beside`.
std::string case_text(const proptest::Case& c, const proptest::Case& beside);

/// Reads it back. Throws InvalidProblem naming the word that is wrong.
/// [certify/findings/state_finding_test "cases beside a case are spelled"]
proptest::Case parse_case_text(const std::string& text, const proptest::Case& beside);

}  // namespace attest::certify
