#pragma once

#include <cstdint>
#include <string_view>

/// Choices in which correct kernels differ. They are named here and never assumed.
namespace attest {

/// Which key a query is aligned with when seqlen_q != seqlen_k: query i with key i (top_left), or
/// with key i + (visible keys - queries) of its sequence (bottom_right, as in decoding).
enum class CausalAlign : std::uint8_t { top_left, bottom_right };

/// Values of a row without a visible key: O = 0 and LSE = -inf, O = 0 and LSE = +inf, NaN in both,
/// or 0 in both. Its gradients are zero in every convention.
enum class EmptyRow : std::uint8_t { zero_neg_inf, zero_pos_inf, nan, zero_zero };

/// Rows past a query length: as rows without a visible key, or not written.
enum class PastLength : std::uint8_t { empty_row, not_written };

/// The base of the logarithm in LSE.
enum class LseBase : std::uint8_t { e, two };

/// Order of the axes in memory, outermost first: batch, seqlen, heads, dim; batch, heads, seqlen,
/// dim; or packed sequences (total tokens, heads, dim).
enum class Layout : std::uint8_t { bshd, bhsd, thd };

/// How the memory of a tensor departs from the packed layout. `padded` leaves gaps after every
/// axis, `transposed` makes the head dimension the outermost axis, `interleaved` gives the head
/// dimension stride 2, `broadcast` repeats one K/V head and one row of dO through stride 0, `huge`
/// spreads the outermost axis of extent > 1 but the innermost over more than 2^32 elements, `mixed`
/// gives every tensor of a call strides of its own.
enum class Strides : std::uint8_t {
  packed,
  padded,
  transposed,
  interleaved,
  broadcast,
  huge,
  mixed
};

/// The conventions a kernel claims; the reference answers in the same ones.
struct Conventions {
  EmptyRow empty_row = EmptyRow::zero_neg_inf;
  LseBase lse_base = LseBase::e;
  PastLength past_length = PastLength::empty_row;

  bool operator==(const Conventions&) const = default;
};

/// Elements of a row without a visible key.
struct EmptyRowValues {
  double O, LSE;
};
EmptyRowValues values_of(EmptyRow convention);

std::string_view name(EmptyRow convention);
std::string_view name(LseBase base);
std::string_view name(PastLength rows);
std::string_view name(Layout layout);
std::string_view name(Strides strides);

}  // namespace attest
