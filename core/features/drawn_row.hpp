#pragma once

#include <array>
#include <cstdint>

/// Numbers of the rows of biases and masks of heads, which a problem string's seed stands for.
namespace attest {

/// Returns the number of a row: of its batch entry, query head and query, 0 along an axis on which
/// the feature does not depend. The entry of key j has the number mix(row, j). A thread remembers
/// its last row, for entries are read along rows.
/// Cost: four of `mix`, none for the row before.  [core/features/drawn_row_test]
std::uint64_t drawn_row(std::uint64_t seed, std::uint64_t stream,
                        const std::array<std::uint64_t, 3>& row);

}  // namespace attest
