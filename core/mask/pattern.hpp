#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/contract/conventions.hpp"
#include "core/mask/key_range.hpp"

/// Which keys a query may see.
namespace attest {

class SparsityPattern;

/// An arbitrary mask of (query, key) pairs, the same for every head.
struct BooleanMask {
  std::int64_t rows = 0;              // seqlen_q
  std::int64_t columns = 0;           // seqlen_k
  std::vector<std::uint8_t> visible;  // row-major, 1 = visible
  std::string spelling;               // "random_30_7" or "file_mask.txt": how it is printed

  /// The same pairs in a compressed form; null where the mask has none.
  std::shared_ptr<const SparsityPattern> sparsity = nullptr;
};

/// Throws InvalidProblem for masks of pairs above 2^31 pairs, or 2^24 queries or keys.
/// [core/mask/pattern_test "limited"]
void require_mask_size(std::string_view spelling, std::int64_t rows, std::int64_t columns);

/// A sparsity pattern as a mask, both forms, of a size that require_mask_size lets pass.
/// [core/mask/pattern_test "sparse patterns"]
std::shared_ptr<const BooleanMask> mask_of(SparsityPattern pattern);

/// One batch entry and where it lies in the tensors.
struct Sequence {
  std::int64_t tensor_batch = 0;  // index on the tensors' batch axis (0 with packed sequences)
  std::int64_t q_begin = 0;       // first row on the sequence axis of Q
  std::int64_t q_length = 0;      // rows of Q that belong to the sequence
  std::int64_t k_begin = 0;       // first row on the sequence axis of K and V
  std::int64_t k_length = 0;      // rows of K that belong to the sequence
  std::int64_t visible_keys = 0;  // keys that exist: k_length, or less with key lengths
  std::int64_t absent = 0;        // the last of its queries, which a query length takes away
  std::int64_t number = 0;        // of the batch entries

  /// Queries that exist: q_length, or less with query lengths.
  std::int64_t queries() const { return q_length - absent; }
};

/// A mask: a band around the aligned key, key lengths, packed sequences and a boolean mask, any of
/// them together: a query sees the keys that all of them leave. Spelled with '+' between the parts:
///
///   none                      every key
///   causal_tl, causal_br      keys up to the aligned one; top-left or bottom-right alignment
///   window_L_R, window_tl_L_R L keys to the left, R to the right of the aligned key (`inf` = all);
///                             bottom-right alignment unless `tl`; negative widths too: -1_3 are
///                             the keys 1 to 3 to the right of the aligned one
///   lengths_7_12              batch entry b has only its first lengths[b] keys
///   cu_3x5_0x7                packed sequences: 3 queries with 5 keys, then 0 with 7
///   random_P_SEED             each pair visible with probability P percent
///   file_PATH                 text file of seqlen_q rows of seqlen_k characters 0 and 1
///   block_QxK_P_SEED …        a sparsity pattern (core/mask/sparsity/sparsity_pattern.hpp)
///
/// At most one of random, file and the sparsity patterns.
struct Pattern {
  static constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::min();

  std::int64_t window_left = -1;   // negative: unbounded, without `offset`
  std::int64_t window_right = -1;  // the same
  bool offset = false;             // widths are any numbers, kUnbounded alone is none
  CausalAlign align = CausalAlign::top_left;
  std::vector<std::int32_t> key_lengths;   // empty: every key exists
  std::vector<std::int32_t> cu_seqlens_q;  // empty: not packed
  std::vector<std::int32_t> cu_seqlens_k;
  std::shared_ptr<const BooleanMask> boolean;  // null: none

  /// The compressed form of the boolean mask; null: none.
  const SparsityPattern* sparsity() const { return boolean ? boolean->sparsity.get() : nullptr; }

  bool packed() const { return !cu_seqlens_q.empty(); }
  bool left_bounded() const { return offset ? window_left != kUnbounded : window_left >= 0; }
  bool right_bounded() const { return offset ? window_right != kUnbounded : window_right >= 0; }
  bool banded() const { return left_bounded() || right_bounded(); }

  /// Gives it the window of two widths, kUnbounded where there is none.
  void set_window(std::int64_t left, std::int64_t right);

  /// Takes the window away.
  void remove_window() {
    window_left = window_right = -1;
    offset = false;
  }

  /// The key query i of the sequence is aligned with (may lie outside the keys).
  std::int64_t aligned_key(const Sequence& sequence, std::int64_t i) const;

  /// The keys of the sequence that the band and the lengths leave to query i, none to one past its
  /// queries; the boolean mask may remove more.
  KeyRange band(const Sequence& sequence, std::int64_t i) const;

  /// Tells whether query i sees key j, both counted within the sequence.  [core/mask/pattern_test]
  bool visible(const Sequence& sequence, std::int64_t i, std::int64_t j) const;

  /// The canonical spelling; parsing it gives an equal pattern.  [core/mask/pattern_test "round
  /// trip"]
  std::string to_string() const;

  /// Parses a spelling. The boolean parts need the sizes of the mask (seqlen_q, seqlen_k).
  /// Throws InvalidProblem with the nearest known part.  [core/mask/pattern_test "refused"]
  static Pattern parse(std::string_view text, std::int64_t seqlen_q, std::int64_t seqlen_k);

  /// Reads only the packed sequences of a spelling, which determine batch and sizes.
  static Pattern parse_packed(std::string_view text);
};

}  // namespace attest
