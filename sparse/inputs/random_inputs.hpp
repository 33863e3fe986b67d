#pragma once

#include <string>
#include <string_view>

#include "core/sparse_operands/sparse_operands.hpp"

namespace attest::sparse {

/// Random sparse Q, K and V of a problem's sizes: in every row the same number of entries, in
/// columns drawn. All entries are 1, since words depend on where entries are and not on their
/// values.
struct RandomInputs {
  double density = 1;  // share of a row that is present, rounded to whole entries, at least one
  std::uint64_t seed = 1;

  /// "csr:density=0.05,seed=1"; the seed may be left out.
  ///
  /// Requires: 0 < density <= 1, a whole seed. Else throws InvalidProblem.
  /// [sparse/inputs/schedules/input_schedules_test "spelling of inputs"]
  static RandomInputs parse(std::string_view text);
  std::string to_string() const;

  /// Requires: a problem of require_sparse_problem. Else throws InvalidProblem.
  SparseOperands operands_for(const Problem& problem) const;
};

}  // namespace attest::sparse
