#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/mask/key_range.hpp"
#include "core/rng.hpp"

namespace attest {

/// Compressed sparse rows: row i has columns[row_offsets[i]] .. columns[row_offsets[i + 1] - 1],
/// ascending.
struct CsrForm {
  std::vector<std::int64_t> row_offsets{0};  // (rows + 1)
  std::vector<std::int32_t> columns;

  friend bool operator==(const CsrForm&, const CsrForm&) = default;
};

/// Whole blocks of block_q queries x block_k keys; the last ones are cut at the pattern's edge.
struct BlockForm {
  std::int64_t block_q = 1;
  std::int64_t block_k = 1;
  CsrForm occupied;  // of the grid: ceil(rows / block_q) x ceil(columns / block_k) blocks

  friend bool operator==(const BlockForm&, const BlockForm&) = default;
};

/// N:M along keys: of every `group` consecutive keys a query sees those at `kept` offsets. The last
/// group is cut at the pattern's edge: offsets beyond name no key.
struct NmForm {
  std::int64_t kept = 1;
  std::int64_t group = 1;
  std::vector<std::uint8_t> offsets;  // (rows, ceil(columns / group), kept), ascending in a group
};

/// Ranges of keys, ascending and disjoint in a row.
struct RangeForm {
  std::vector<std::int64_t> row_offsets{0};  // (rows + 1)
  std::vector<KeyRange> ranges;
};

/// An immutable set of visible (query, key) pairs of one head, rows x columns, kept in the form it
/// was given in. Nothing takes memory for rows x columns but to_boolean(). Spelled
///
///   block_QxK_PERCENT_SEED     blocks of Q queries x K keys, each visible with that probability
///   blockband_QxK_W            blocks whose row and column of blocks differ by at most W
///   butterfly_QxK              blocks whose indices differ in at most one bit: the flat butterfly,
///                              cut from the next power of two (Dao et al. 2022, Pixelated
///                              Butterfly, section 3)
///   documents_5_7_3            block diagonal of these lengths; 5x2 is 5 queries and 2 keys
///   rows_PERCENT_SEED          whole queries, each with that probability; the others see nothing
///   columns_PERCENT_SEED       whole keys, each with that probability
///   dilated_L_R_STEP           every STEP-th key: L to the left, R to the right of the aligned key
///                              (`inf` = all; dilated_inf_0_8 is strided: Child et al. 2019)
///   global_G_L_R               a window of L and R, and the first G queries and keys whole
///                              (Beltagy et al. 2020)
///   nm_N_M_SEED                N of every M consecutive keys, M at most 256
///   pairs_PERCENT_SEED         each pair with that probability
///   pattern_PATH               a file (core/mask/sparsity/pattern_file.hpp)
///
/// Blocks count from query 0 and key 0; one size stands for both (block_64_10_7). Windows align the
/// last query with the last key, as window_L_R does. A PERCENT may have decimals; it is 0 or at
/// least 0.01. Draws of one seed are the same on every machine.
class SparsityPattern {
 public:
  using Form = std::variant<CsrForm, BlockForm, NmForm, RangeForm>;

  /// Throws InvalidProblem, with the spelling and the place, where the form does not describe a set
  /// of rows x columns pairs: lists of the wrong length, indices out of range, unsorted or twice.
  /// Extents are at most 2^31 - 1.  [core/mask/sparsity/sparsity_pattern_test "refused"]
  SparsityPattern(std::int64_t rows, std::int64_t columns, Form form, std::string spelling);

  /// Throws InvalidProblem for other spellings, for a pattern that needs more than 2^29 stored
  /// indices and for a file or documents of another shape.
  /// Cost: time and memory of the form.
  /// [core/mask/sparsity/families_test]
  static SparsityPattern parse(std::string_view spelling, std::int64_t rows, std::int64_t columns);

  /// The first word of a family's spellings, how they go on, one of them, and what a query sees.
  struct Family {
    std::string name, form, example, summary;
  };
  static const std::vector<Family>& families();

  /// Draws the spelling of a pattern of rows x columns pairs, as generated cases have them: of any
  /// family but files.  [core/mask/sparsity/families_test "drawn"]
  static std::string draw(Rng& rng, std::int64_t rows, std::int64_t columns);

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  const Form& form() const { return form_; }

  /// Canonical: parsing it with the same rows and columns gives an equal pattern, unless it came
  /// from transpose().  [core/mask/sparsity/families_test "round trip"]
  const std::string& spelling() const { return spelling_; }

  /// Visible pairs.
  std::int64_t nnz() const { return nnz_; }

  /// nnz / (rows * columns); 0 of nothing.
  double density() const;

  /// The keys of a row as ascending ranges that do not touch, in place of what `ranges` held.
  /// Cost: what the form stores for the row.
  void row(std::int64_t query, std::vector<KeyRange>& ranges) const;

  /// Tells whether query i sees key j. Cost: that of the row.
  bool contains(std::int64_t query, std::int64_t key) const;

  /// Visible keys of every query, and queries of every key.
  /// [core/mask/sparsity/sparsity_pattern_test "brute force"]
  std::vector<std::int64_t> row_degrees() const;
  std::vector<std::int64_t> column_degrees() const;

  /// The tiles of `tile_k` keys that hold a pair of a query of the range, ascending.
  /// [core/mask/sparsity/sparsity_pattern_test "occupied tiles"]
  std::vector<std::int32_t> occupied_tiles(KeyRange queries, std::int64_t tile_k) const;

  /// The occupied tiles of every block row: the smallest block form that covers the pattern.
  /// [core/mask/sparsity/sparsity_pattern_test "occupied tiles"]
  BlockForm tiles(std::int64_t tile_q, std::int64_t tile_k) const;

  /// The same pairs as (key, query), columns x rows. Blocks stay blocks of the transposed size,
  /// ranges stay ranges; the others become CSR. The spelling gets or loses a "^T", for people only.
  /// Cost: time nnz, for blocks their number.
  /// [core/mask/sparsity/sparsity_pattern_test "transpose of its transpose"]
  SparsityPattern transpose() const;

  /// Memory: 8 (rows + 1) + 4 nnz bytes.  [core/mask/sparsity/sparsity_pattern_test "one set"]
  CsrForm to_csr() const;

  /// (rows, columns), 1 = visible.  [core/mask/sparsity/sparsity_pattern_test "one set"]
  std::vector<std::uint8_t> to_boolean() const;

  /// The same shape and pairs, whatever the forms.
  friend bool operator==(const SparsityPattern& a, const SparsityPattern& b);

 private:
  std::int64_t rows_, columns_;
  Form form_;
  std::string spelling_;
  std::int64_t nnz_ = 0;
};

}  // namespace attest
