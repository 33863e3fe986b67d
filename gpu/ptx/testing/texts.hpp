#pragma once

#include <string>
#include <vector>

/// PTX texts of tests: small kernels as nvcc and Triton compiled them (testing/*.ptx), and kernels
/// written by hand.
namespace attest::ptx::testing {

/// The file testing/<name>.ptx.
std::string text(const std::string& name);
/// Names of all files.
const std::vector<std::string>& texts();

/// A module with one kernel of that name, its parameters and its body.
std::string kernel(const std::string& parameters, const std::string& body);

/// The text with `part` replaced once; a text without it is a mistake of the test.
std::string with(std::string text, const std::string& part, const std::string& other);

}  // namespace attest::ptx::testing
