#pragma once

#include <string>

#include "core/mask/sparsity/sparsity_pattern.hpp"

namespace attest {

/// Throws InvalidProblem, "pattern 'SPELLING': …", where the form is not one of rows x columns.
/// [core/mask/sparsity/sparsity_pattern_test "refused"]
void check_form(const SparsityPattern::Form& form, std::int64_t rows, std::int64_t columns,
                const std::string& spelling);

}  // namespace attest
