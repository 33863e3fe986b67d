#pragma once

#include <string>

/// The text of the formulas that the segment argument shares, so that a reader who evaluates the
/// text gets the number printed beside it.  [io/bounds/formula_test]
namespace attest::io {

/// Returns the text of greatest_words_of_segments: "max_{X,Y} Y + X (h - 1) + 1, h = ceil((WORK -
/// F(Y))/F(M+X)) >= 1", with `less` after the maximum (" - Z").
std::string segments_formula(const std::string& work, const std::string& less = "",
                             const std::string& maximum = "F");

/// Returns the text of bounds without the ceiling, of products (product_segment_maximum):
/// "max_X max(X (T - F(X)), M F(M+X) + X (T - F(M)))/F(M+X) LESS, T = WORK, F(B) = (B/3)^(3/2)",
/// then `lengths`, a condition on X, if it is not empty.
std::string linear_formula(const std::string& work, const std::string& less,
                           const std::string& lengths = "");

}  // namespace attest::io
