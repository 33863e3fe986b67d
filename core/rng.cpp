#include "core/rng.hpp"

#include "core/error.hpp"

namespace attest {
namespace {

struct Product {
  std::uint32_t high, low;
};

Product multiply(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t p = std::uint64_t{a} * b;
  return {static_cast<std::uint32_t>(p >> 32), static_cast<std::uint32_t>(p)};
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  constexpr std::uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  for (int round = 0; round < 10; ++round) {
    const Product p0 = multiply(kMultiplier0, counter[0]);
    const Product p1 = multiply(kMultiplier1, counter[2]);
    counter = {p1.high ^ counter[1] ^ key[0], p1.low, p0.high ^ counter[3] ^ key[1], p0.low};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

std::uint32_t Rng::bits32() {
  if (used_ == 4) {
    buffer_ =
        philox4x32({static_cast<std::uint32_t>(block_), static_cast<std::uint32_t>(block_ >> 32),
                    static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
                   {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    ++block_;
    used_ = 0;
  }
  return buffer_[used_++];
}

std::uint64_t Rng::bits64() {
  const std::uint64_t high = bits32();
  return (high << 32) | bits32();
}

double Rng::uniform() { return static_cast<double>(bits64() >> 11) * 0x1p-53; }

std::int64_t Rng::between(std::int64_t low, std::int64_t high) {
  if (low > high) throw InternalError("Rng::between: low exceeds high");
  const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  if (span == ~std::uint64_t{0}) return static_cast<std::int64_t>(bits64());
  const std::uint64_t count = span + 1;
  std::uint64_t draw = bits64();
  // Beyond the last multiple of `count` a draw is repeated; most are not near, and divisions are
  // dear.
  if (draw > ~std::uint64_t{0} - count) {
    const std::uint64_t limit = ~std::uint64_t{0} - (~std::uint64_t{0} % count + 1) % count;
    while (draw > limit) draw = bits64();
  }
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + draw % count);
}

double Rng::normal() {
  std::uint32_t sum = 0;
  for (int pair = 0; pair < 6; ++pair) {
    const std::uint32_t bits = bits32();
    sum += (bits >> 16) + (bits & 0xffffu);
  }
  return (static_cast<double>(sum) + 6.0) * 0x1p-16 - 6.0;  // + 1/2 for each of the twelve
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const auto mixed =
      philox4x32({static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(a >> 32),
                  static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(b >> 32)},
                 {0x61747465u, 0x73740000u});
  return (std::uint64_t{mixed[0]} << 32) | mixed[1];
}

}  // namespace attest
