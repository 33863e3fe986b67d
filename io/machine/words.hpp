#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>

#include "core/error.hpp"

namespace attest::io {

/// A count that leaves the 64-bit range.
struct CountOverflow : InvalidProblem {
  using InvalidProblem::InvalidProblem;
};

/// A number of words or bytes. Sums, differences and products that leave the 64-bit range throw
/// CountOverflow instead of wrapping.  [io/machine/words_test]
class Words {
 public:
  constexpr Words(std::int64_t value = 0) : value_(value) {}  // NOLINT: a count is a number

  constexpr std::int64_t value() const { return value_; }

  friend Words operator+(Words a, Words b) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(a.value_, b.value_, &sum)) overflow(a, '+', b);
    return sum;
  }
  friend Words operator-(Words a, Words b) {
    std::int64_t difference = 0;
    if (__builtin_sub_overflow(a.value_, b.value_, &difference)) overflow(a, '-', b);
    return difference;
  }
  friend Words operator*(Words a, Words b) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a.value_, b.value_, &product)) overflow(a, '*', b);
    return product;
  }
  Words& operator+=(Words other) { return *this = *this + other; }
  friend constexpr auto operator<=>(Words, Words) = default;

 private:
  [[noreturn]] static void overflow(Words a, char operation, Words b) {
    throw CountOverflow("words: " + std::to_string(a.value_) + " " + operation + " " +
                        std::to_string(b.value_) +
                        " exceeds 2^63 - 1; give a smaller problem or larger tiles");
  }

  std::int64_t value_;
};

/// How many blocks cover an extent. Requires block >= 1.
inline std::int64_t tiles(std::int64_t extent, std::int64_t block) {
  return extent / block + (extent % block != 0 ? 1 : 0);
}

/// The same amount of data in words (scalars of any width) and in bytes.
struct Amount {
  Words words, bytes;

  friend Amount operator+(Amount a, Amount b) { return {a.words + b.words, a.bytes + b.bytes}; }
  friend Amount operator*(Words times, Amount a) { return {times * a.words, times * a.bytes}; }
  Amount& operator+=(Amount other) { return *this = *this + other; }
  friend bool operator==(const Amount&, const Amount&) = default;
};

/// The larger in words and, independently, the larger in bytes.
inline Amount larger(Amount a, Amount b) {
  return {std::max(a.words, b.words), std::max(a.bytes, b.bytes)};
}

/// Traffic of a run between fast and slow memory, and the most that was in fast memory at once.
struct Traffic {
  Amount reads, writes, peak;

  Words total_words() const { return reads.words + writes.words; }
  Words total_bytes() const { return reads.bytes + writes.bytes; }
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

/// The same so often: of the same fast memory, so that the peak is that of one.
inline Traffic times(Words count, Traffic one) {
  one.reads = count * one.reads;
  one.writes = count * one.writes;
  return one;
}

/// One after the other: reads and writes add, the larger peak counts.
inline Traffic then(Traffic a, Traffic b) {
  return {a.reads + b.reads, a.writes + b.writes, larger(a.peak, b.peak)};
}

}  // namespace attest::io
