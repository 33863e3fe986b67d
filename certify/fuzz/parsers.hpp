#pragma once

#include <span>
#include <string>
#include <string_view>

/// Parsers of what comes from outside, each as a function of bytes, for libFuzzer and for the
/// corpus.
namespace attest::certify::fuzz {

/// A parser. `parse` reads the bytes, from a file in that folder where it reads files. It throws
/// InvalidProblem for bytes that are refused; every other exception is a fault. InternalError says
/// that what was read and written is read as something else.
struct Parser {
  std::string_view name;
  void (*parse)(const std::string& bytes, const std::string& folder);
};

/// One row for each parser. [certify/fuzz/parsers_test "the corpus"]
std::span<const Parser> parsers();

/// Returns the parser of a name. Throws InvalidProblem, with the names, where there is none.
const Parser& find_parser(std::string_view name);

/// Tells whether the parser takes the bytes. Throws what is a fault.
/// [certify/fuzz/parsers_test "faults"]
bool takes(const Parser& parser, const std::string& bytes, const std::string& folder);

}  // namespace attest::certify::fuzz
