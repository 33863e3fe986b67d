#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/dtype/dtype.hpp"

/// Additive bias: a term of each score, after softcap and ALiBi, that is the same along some axes.
namespace attest {

/// Values of a bias that a caller gives; no text spells them.
struct GivenBias {
  std::array<std::int64_t, 4> extents{};  // (batch, query heads, seqlen_q, seqlen_k), or 1
  std::vector<double> values;             // packed

  double operator()(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(((b * extents[1] + h) * extents[2] + i) * extents[3] +
                                           j)];
  }
};

/// A bias and its spelling: the axes that it depends on, letters of "bhqk" in this order (`1`: none
/// of them), its dtype where that is not the tensors' own, and its values:
///
///   bhqk_drawn_7   seed 7: mostly between -4 and 4, now and then far below or above
///   k_holes_7      the same, and -inf for about a fourth of the keys and for some whole rows
///   hq_f32_drawn_7 in float32, whatever the tensors are
///
/// A value depends on the seed and its own indices alone: a smaller problem has the same.
struct Bias {
  enum class Kind : std::uint8_t { none, drawn, holes, given };

  Kind kind = Kind::none;
  std::array<bool, 4> axes{};  // batch, query head, query, key: whether it depends on them
  bool single = false;         // in float32, not in the tensors' type
  std::uint64_t seed = 0;      // of what is drawn
  std::shared_ptr<const GivenBias> given = nullptr;

  bool operator==(const Bias&) const = default;

  /// The type that it is held in, of tensors of a type.
  DType dtype(DType tensors) const { return single ? DType::f32 : tensors; }

  /// The term of one score, a number of `held`; 0 without a bias. Indices count within a sequence,
  /// of which the batch is the number.
  double operator()(DType held, std::int64_t b, std::int64_t h, std::int64_t i,
                    std::int64_t j) const;

  /// The same with the values of index 0 for all indices of an axis.
  Bias first_of(std::size_t axis) const;

  /// The spelling, and back. Throws InvalidProblem for a text that is none.
  /// [core/features/bias_test "spelled"]
  std::string to_string() const;
  static Bias parse(const std::string& text);
};

}  // namespace attest
