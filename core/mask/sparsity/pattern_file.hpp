#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/mask/sparsity/sparsity_pattern.hpp"

/// Files of sparsity patterns, for the spelling pattern_PATH. PATH ends in .json or .safetensors;
/// both hold lists of integers under the same names:
///
///   shape        [rows, columns]: seqlen_q, seqlen_k
///   row_offsets  rows + 1 of them, from 0 on: row i has columns[row_offsets[i]] and on, up to
///                row_offsets[i + 1]
///   columns      keys, ascending in every row
///   block        [block_q, block_k], only in lists of blocks: rows and columns are then those of
///                the grid of blocks, ceil(rows / block_q) x ceil(columns / block_k)
///   group        [N, M], only of N:M patterns, which have offsets in place of columns
///   offsets      N of them for every row and group of M keys, row after row: the keys that the row
///                keeps, counted from the group's first, ascending and below M. A last group of
///                fewer than M keys has N offsets too; those past the last key name none.
///
/// JSON is one object of these lists; in safetensors they are tensors of one axis, dtype I32 or
/// I64.
namespace attest {

/// Rows and columns of a pattern.
struct PatternShape {
  std::int64_t rows, columns;
  bool operator==(const PatternShape&) const = default;
};

/// Reads a file; the spelling is pattern_PATH. Throws InvalidProblem, with the file and the place,
/// when it is no regular file, not of the format, cut off, has other lists or dtypes, does not
/// describe a pattern or one of another shape than is wanted, before memory is taken for its rows.
/// [core/mask/sparsity/pattern_file_test "malformed files"]
SparsityPattern read_pattern_file(const std::string& path,
                                  std::optional<PatternShape> wanted = std::nullopt);

/// The bytes of such files: lists of blocks of a block form, offsets of an N:M form, CSR of every
/// other.
/// [core/mask/sparsity/pattern_file_test "round trip"]
std::string pattern_json(const SparsityPattern& pattern);
std::string pattern_safetensors(const SparsityPattern& pattern);

}  // namespace attest
