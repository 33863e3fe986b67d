#pragma once

#include <string>
#include <vector>

namespace attest {

/// A part of a mask as it is spelled: its first word, how it goes on, and what a query sees by it.
struct MaskSpelling {
  std::string name, form, summary;
};

/// All of them, sparsity patterns last. At most one of a mask's parts is of pairs: `random`, `file`
/// or a sparsity pattern.  [core/mask_spellings_test "every part"]
const std::vector<MaskSpelling>& mask_spellings();

}  // namespace attest
