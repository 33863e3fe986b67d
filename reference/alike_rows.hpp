#pragma once

#include "reference/group.hpp"

namespace attest::reference {

/// Which rows of a matrix are the one that occurs most often, 1, or its negative, -1; else 0. What
/// is computed of such rows and one operand is rounded alike. Empty where no row but zeros occurs
/// twice. Cost: n log n comparisons of rows, nearly all of which end at the first column.
/// [reference/shared_errors_test "alike"]
Vector alike_rows(const Matrix& rows);

}  // namespace attest::reference
