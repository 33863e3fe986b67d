#pragma once

#include "reference/group.hpp"

namespace attest::reference {

/// Marks the rows of a matrix equal to the one that occurs most often, 1, or to its negative, -1;
/// else 0. Results of such rows and one operand are rounded alike. Empty where no row but zeros
/// occurs twice. Cost: n log n comparisons of rows, nearly all of which end at the first column.
/// [reference/bounds/shared_errors_test "alike"]
Vector alike_rows(const Matrix& rows);

/// Marks by 1 the rows of a matrix that another row equals, or is the negative of; else 0. Rows of
/// zeros are none. Cost: as that of alike_rows.  [reference/bounds/shared_errors_test "repeated"]
Vector repeated_rows(const Matrix& rows);

}  // namespace attest::reference
