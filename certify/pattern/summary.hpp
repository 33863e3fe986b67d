#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/mask/sparsity/sparsity_pattern.hpp"
#include "core/problem.hpp"

/// Summary of a mask's pairs, for people and for programs that choose a kernel by it.
namespace attest::certify {

/// How many others the queries see, or the keys are seen by.
struct Degrees {
  std::int64_t least = 0, median = 0, most = 0;  // 0 of nothing
  std::int64_t none = 0, one = 0;                // how many have no other, or a single one
  friend bool operator==(const Degrees&, const Degrees&) = default;
};

/// The share of pairs in each cell of a grid laid over queries and keys, row by row. Cells are
/// `cell_q` queries x `cell_k` keys, ragged at the ends.
struct DensityMap {
  std::int64_t cell_q = 1, cell_k = 1;
  std::int64_t rows = 0, columns = 0;  // of cells
  std::vector<double> density;         // (rows, columns)
};

/// Queries and keys of the tiles that are counted.
inline constexpr std::int64_t kCountedTile = 64;

struct PatternSummary {
  Degrees queries, keys;
  std::int64_t components = 0;              // no pair joins the queries or keys of two
  std::int64_t diagonals = 0;               // consecutive values of key - query that hold all pairs
  std::int64_t first_diagonal = 0;          // the least of them
  std::int64_t tiles = 0, whole_tiles = 0;  // with a pair; with no pair missing
  std::int64_t all_tiles = 0;
  DensityMap map;
};

/// The pattern of the pairs that a head of the problem sees. Throws InvalidProblem where batch
/// entries see different pairs, with the remedy.  [certify/pattern/summary_test "one pattern"]
SparsityPattern pattern_of(const Problem& problem);

/// Counts what is there to see. The map has at most 32 rows and 64 columns of cells.
///
/// Ensures: what counting the pairs one by one gives  [certify/pattern/summary_test "brute force"]
/// Cost:    time the ranges of keys of the pattern, and the tiles.
PatternSummary summarize(const SparsityPattern& pattern);

/// "blocks of 64 x 32", "2 of every 4 keys", "single pairs", "ranges of keys": the form it is in.
std::string form_text(const SparsityPattern& pattern);

/// The map as lines between bars, one character a cell: blank for none, '@' for all pairs of a
/// cell, between them one of .:-=+*#% by eighths.  [certify/pattern/summary_test "a map in
/// characters"]
std::string map_text(const DensityMap& map);

/// The fields of certify/schemas/pattern.schema.json but `version`.  [certify/pattern/summary_test
/// "schema"]
nlohmann::json pattern_summary_json(const SparsityPattern& pattern, const PatternSummary& summary);

/// Throws InvalidProblem unless the pattern can be written to a file of that name and read as a
/// mask: .json with at most 2^27 indices or .safetensors with at most 2^29, and a size that
/// require_mask_size lets pass.  [certify/pattern/summary_test "files"]
void require_pattern_file(const SparsityPattern& pattern, const std::string& path);

/// The bytes of such a file.  [certify/pattern/summary_test "files"]
std::string pattern_file_bytes(const SparsityPattern& pattern, const std::string& path);

}  // namespace attest::certify
