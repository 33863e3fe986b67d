#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// Boolean masks of each batch entry and query head.
namespace attest {

/// A mask that a caller gives; no text spells it.
struct GivenHeadMask {
  std::array<std::int64_t, 4> extents{};  // (batch, query heads, seqlen_q, seqlen_k), or 1
  std::vector<std::uint8_t> visible;      // packed; 1 = visible
};

/// Such a mask and its spelling: the axes that it depends on, letters of "bhqk" in this order (`1`:
/// none of them), how many percent of its entries are visible, and a seed:
///
///   bhqk_60_7   of each pair of each head of each batch entry, 60 percent, seed 7
///   bk_60_7     keys hidden from all queries and heads of a batch entry
///
/// An entry depends on the seed and its own indices alone: a smaller problem has the same.
struct HeadMask {
  enum class Kind : std::uint8_t { none, drawn, given };

  Kind kind = Kind::none;
  std::array<bool, 4> axes{};  // batch, query head, query, key: whether it depends on them
  std::int64_t percent = 0;    // of what is drawn
  std::uint64_t seed = 0;      // the same
  std::shared_ptr<const GivenHeadMask> given = nullptr;

  bool operator==(const HeadMask&) const = default;

  /// Tells whether it leaves a pair; each without a mask. Indices count within a sequence, of which
  /// the batch is the number.
  bool operator()(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const;

  /// The same with the entries of index 0 for all indices of an axis.
  HeadMask first_of(std::size_t axis) const;

  /// The spelling, and back. Throws InvalidProblem for a text that is none.
  /// [core/features/head_mask_test "spelled"]
  std::string to_string() const;
  static HeadMask parse(const std::string& text);
};

}  // namespace attest
