#pragma once

#include <optional>
#include <string_view>

#include "core/mask/sparsity/pattern_file.hpp"

namespace attest {

/// The sizes that a mask's spelling leaves no choice of: those of its file, of its documents.
/// Nothing for masks of any size. Throws InvalidProblem for a file that cannot be read.
/// [core/mask/pattern_test "sizes that a mask fixes"]
std::optional<PatternShape> shape_of_mask(std::string_view text);

}  // namespace attest
