#pragma once

#include <cstdint>
#include <limits>

/// Softmax of rows that arrive tile by tile (Dao 2023, Algorithm 1): maximum m and sum l per row.
namespace attest::cpu {

/// m = sink, l = 1; without a sink, which is -inf, l = 0.
void start_rows(std::int64_t rows, float* m, float* l,
                float sink = -std::numeric_limits<float>::infinity());

/// Takes in one tile of scores: S(rows, keys) becomes exp(S - m), and O(rows, columns) and l are
/// rescaled to the new maximum.
void update_rows(std::int64_t rows, std::int64_t keys, std::int64_t columns, float* S, float* m,
                 float* l, float* O);

/// Divides O by l; m becomes LSE, -inf where no score was above -inf.
void finish_rows(std::int64_t rows, std::int64_t columns, float* m, const float* l, float* O);

}  // namespace attest::cpu
