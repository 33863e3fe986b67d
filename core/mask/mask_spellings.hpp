#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// A part of a mask as it is spelled: its first word, how it goes on, an example, and what a query
/// sees by it.
struct MaskSpelling {
  std::string name, form, example, summary;
};

/// All of them, sparsity patterns last. At most one of a mask's parts is of pairs: `random`, `file`
/// or a sparsity pattern.  [core/mask/mask_spellings_test "every part"]
const std::vector<MaskSpelling>& mask_spellings();

/// The parts of a mask's spelling, which '+' separates: `none` is one as well.
///
/// Throws InvalidProblem for one that begins with no known word, and says where a '+' has ended a
/// path.  [core/mask/mask_spellings_test "parts"]
std::vector<std::string> mask_parts(std::string_view text);

/// Throws InvalidProblem: the part is unknown, what is near and which there are.
[[noreturn]] void refuse_unknown_part(const std::string& part);

}  // namespace attest
