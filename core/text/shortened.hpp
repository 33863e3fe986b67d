#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attest {

/// Text from a file as a message shows it: its first `most` bytes, then "..." where there are more,
/// with '?' for control characters.  [core/mask/sparsity/pattern_file_test "shown in part"]
std::string shortened(std::string_view text, std::size_t most = 40);

}  // namespace attest
