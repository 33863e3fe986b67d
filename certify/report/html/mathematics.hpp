#pragma once

#include <string>
#include <string_view>

namespace attest::certify {

/// Returns a text as HTML, escaped, its formulas typeset: exponents (N^2, M^(3/2)) as superscripts,
/// indices of single letters (d_k) as subscripts, sqrt(M) with a bar, <= and >= and Theta as signs.
/// Names of more letters (two_pass) stay. [certify/report/html/mathematics_test]
std::string mathematics(std::string_view text);

/// Returns a text with the signs of Unicode alone, for drawings: N², √M, ≤. An exponent that
/// Unicode lacks stays. [certify/report/html/mathematics_test]
std::string plain_mathematics(std::string_view text);

}  // namespace attest::certify
