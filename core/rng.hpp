#pragma once

#include <array>
#include <cstdint>

namespace attest {

/// Version of the random-number stream: the same seed and version give the same bits on every
/// machine. Written as "v1;" before problem strings in files.
inline constexpr int kStreamVersion = 1;

/// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): a keyed
/// bijection of 128-bit counters.  [core/rng_test "known answers"]
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

/// A counter-based stream: (seed, stream) name it, no state beyond a counter. Streams of different
/// number are independent, so a tensor's values do not depend on how many others were drawn.
class Rng {
 public:
  explicit Rng(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  std::uint32_t bits32() {
    if (used_ == kWords) refill();
    const unsigned word = used_++;
    return buffer_[word % 4][word / 4];
  }
  std::uint64_t bits64();

  /// Uniform on [0, 1), a multiple of 2^-53.
  double uniform();

  /// Uniform on {low, ..., high}, both ends included; requires low <= high.
  std::int64_t between(std::int64_t low, std::int64_t high);

  /// Mean 0, variance 1, bell-shaped, |x| <= 6: the sum of twelve uniforms, so that the bits do not
  /// depend on a libm.
  double normal();

 private:
  void refill();

  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t block_ = 0;  // the next to be made
  // Word k of several blocks in buffer_[k].
  static constexpr unsigned kBlocks = 16, kWords = 4 * kBlocks;
  std::array<std::array<std::uint32_t, kBlocks>, 4> buffer_{};
  unsigned used_ = kWords;
};

/// A well-mixed 64-bit value of two: derives seeds ("case 17 of seed 3") without correlation.
std::uint64_t mix(std::uint64_t a, std::uint64_t b);

}  // namespace attest
