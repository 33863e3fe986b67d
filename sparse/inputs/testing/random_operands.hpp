#pragma once

#include "core/rng.hpp"
#include "core/sparse_operands/sparse_operands.hpp"

namespace attest::sparse::testing {

/// Small integers, so that every sum of products is exact in any order. Ragged: rows without an
/// entry, and full ones.
CsrMatrix random_integers(Rng& rng, std::int64_t rows, std::int64_t columns, double density);

/// Sizes up to 20.
SparseOperands random_operands(Rng& rng);

/// Every row has the same number of entries, in columns drawn.
CsrMatrix random_rows(Rng& rng, std::int64_t rows, std::int64_t columns, std::int64_t entries);

}  // namespace attest::sparse::testing
