#pragma once

#include <string>

#include "core/sparsity/sparsity_pattern.hpp"

namespace attest {

/// Throws InvalidProblem, "pattern 'SPELLING': …", where the form is not one of rows x columns.
/// [core/sparsity/sparsity_pattern_test "refused"]
void check_form(const SparsityPattern::Form& form, std::int64_t rows, std::int64_t columns,
                const std::string& spelling);

/// ceil(extent / size), for size >= 1 and extent >= 0.
inline std::int64_t blocks_of(std::int64_t extent, std::int64_t size) {
  return extent / size + (extent % size == 0 ? 0 : 1);
}

}  // namespace attest
