#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/bounds/bound.hpp"
#include "io/bounds/extent.hpp"
#include "io/bounds/kernel_class.hpp"
#include "io/machine/words.hpp"

namespace attest::io {

/// How many rows of each operand a kernel must read.
struct OperandRows {
  std::int64_t q = 0, k = 0, v = 0;
};

/// Distinct words of those rows of Q, K and V: what is shared is counted once, and of storage
/// shared in an unknown way nothing is counted.  [io/bounds/class_test "shared storage"]
Words distinct_words(const Extent& extent, Storage storage, const OperandRows& rows);

/// Names of the numbers of OperandRows: "rows" of Q, "columns" of K and V.
struct OperandNames {
  std::string q, k, v;
};

/// Returns the formula of distinct_words: "rows d_k + columns (d_k + d_v)".
std::string distinct_words_formula(Storage storage, const OperandNames& rows);

/// The greatest of `others` that are lower bounds and speak of rows with at least two visible keys
/// alone; 0 if none is. Words that other rows must move come on top of the greatest:
/// docs/theory/bounds/compulsory.md, "Other rows".
Words greatest_of_many_keys(const std::vector<Bound>& others);

}  // namespace attest::io
