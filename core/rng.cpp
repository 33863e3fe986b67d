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

using Counter = std::array<std::uint32_t, 4>;
using Key = std::array<std::uint32_t, 2>;

// The rounds of several counters, word k of each in words[k]: side by side, for one alone waits for
// its products.
template <std::size_t Count>
void encipher(std::array<std::array<std::uint32_t, Count>, 4>& words, Key key) {
  constexpr std::uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  for (int round = 0; round < 10; ++round) {
    for (std::size_t n = 0; n < Count; ++n) {
      const Product p0 = multiply(kMultiplier0, words[0][n]);
      const Product p1 = multiply(kMultiplier1, words[2][n]);
      words[0][n] = p1.high ^ words[1][n] ^ key[0];
      words[1][n] = p1.low;
      words[2][n] = p0.high ^ words[3][n] ^ key[1];
      words[3][n] = p0.low;
    }
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
}

Counter halves(std::uint64_t a, std::uint64_t b) {
  return {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(a >> 32),
          static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(b >> 32)};
}

}  // namespace

Counter philox4x32(Counter counter, Key key) {
  std::array<std::array<std::uint32_t, 1>, 4> words{};
  for (std::size_t k = 0; k < 4; ++k) words[k][0] = counter[k];
  encipher(words, key);
  return {words[0][0], words[1][0], words[2][0], words[3][0]};
}

// Many streams are asked for a few words only: the first block is made alone.
void Rng::refill() {
  const Key key{static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)};
  if (block_ == 0) {
    const Counter first = philox4x32(halves(block_++, stream_), key);
    for (std::size_t k = 0; k < 4; ++k) buffer_[k].back() = first[k];
    used_ = kWords - 4;
    return;
  }
  for (std::size_t n = 0; n < kBlocks; ++n) {
    const Counter counter = halves(block_++, stream_);
    for (std::size_t k = 0; k < 4; ++k) buffer_[k][n] = counter[k];
  }
  encipher(buffer_, key);
  used_ = 0;
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
  const Counter mixed = philox4x32(halves(a, b), {0x61747465u, 0x73740000u});
  return (std::uint64_t{mixed[0]} << 32) | mixed[1];
}

}  // namespace attest
