#pragma once

#include <cstdint>
#include <functional>

#include "certify/reproduce/claims/strassen.hpp"
#include "certify/reproduce/experiment.hpp"

/// Words of fast and of classical multiplication, held against the bound for any multiplication.
namespace attest::certify {

/// Ways to multiply: `depth_first` in words of fast memory, `resident` in rows of a tile.
struct Multipliers {
  using Words =
      std::function<ProductWords(const ProductTask& task, std::int64_t size, Multiplication how)>;
  Words depth_first, resident;
};

/// depth_first_product and resident_product.
Multipliers counted_multipliers();

/// The claims about fast multiplication on S = Q K^T, for M/d^2 from 1/16 to 64.
///
/// Requires: rows and head_dim that are powers of two. Else throws InvalidProblem.
/// [certify/reproduce/claims/multiplication_words_test "cheaper"]
Findings multiplication_words(std::int64_t rows, std::int64_t head_dim,
                              const Multipliers& multipliers);

}  // namespace attest::certify
