#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// The candidate with the smallest edit distance to `word`, whatever the case of letters; where
/// none is near (more than half of the word would have to change), the shortest that has it as a
/// part; or "".  [core/text/suggest_test]
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "; did you mean 'x'?" with the nearest candidate, or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace attest
