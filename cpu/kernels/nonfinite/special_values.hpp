#pragma once

#include <cstdint>
#include <vector>

#include "cpu/kernels/tiles/score_tile.hpp"
#include "cpu/kernels/tiles/tensor_io.hpp"

/// NaN and infinities in tiles of V. A product of matrices takes 0 times such a value into rows
/// that do not see its key; here it reaches the others alone.
namespace attest::cpu {

/// One of them, in its tile.
struct SpecialValue {
  std::int64_t key, column;
  float value;
};

/// Tells whether the rows of a tile of V have one.
bool has_special_values(const RowsView& V, std::int64_t keys, std::int64_t columns);

/// Takes them out of a tile V(keys, columns): 0 takes their place.
std::vector<SpecialValue> take_special_values(float* V, std::int64_t keys, std::int64_t columns);

/// One query against the keys of a tile, and its row of O.
struct SpecialRow {
  std::int64_t head, query, first_key;
  const float* P;  // of the tile's first key
  std::int64_t key_stride;
  float* O;
  std::int64_t column_stride;
};

/// Adds P times them to the row, where it sees their keys.
void add_special_values(const attest_forward_args& args, const Batch& batch,
                        const std::vector<SpecialValue>& special, const SpecialRow& row);

}  // namespace attest::cpu
