#include "certify/long_problems.hpp"

#include <optional>
#include <string>

#include "core/dtype.hpp"
#include "core/rng.hpp"
#include "proptest/run.hpp"

namespace attest::certify {
namespace {

using proptest::Tier;
using proptest::Values;

using Words = std::vector<std::string>;

// One long problem: what is wanted first, and what will do where that is not claimed.
struct Wish {
  Words masks, sizes, heads;
  Values values = Values::normal;
};

// The smallest head dimensions: what is long costs enough.
const Words& head_dims() {
  static const Words words{"d=8",  "d=16", "d=32",  "d=40",  "d=48",  "d=64",
                           "d=80", "d=96", "d=112", "d=128", "d=192", "d=256"};
  return words;
}

std::optional<Problem> nearest_claimed(const attest_description& description, DType dtype,
                                       const Wish& wish) {
  for (const std::string& mask : wish.masks) {
    for (const std::string& sizes : wish.sizes) {
      for (const std::string& heads : wish.heads) {
        for (const std::string& d : head_dims()) {
          Problem problem = Problem::parse(heads + "," + sizes + "," + d + ",mask=" + mask +
                                           ",dtype=" + std::string(name(dtype)));
          if (proptest::unclaimed(description, problem, proptest::Direction::forward).empty()) {
            return problem;
          }
        }
      }
    }
  }
  return std::nullopt;
}

std::string sizes_of(std::int64_t queries, std::int64_t keys) {
  return "sq=" + std::to_string(queries) + ",sk=" + std::to_string(keys);
}

Words squares(const std::vector<std::int64_t>& lengths) {
  Words sizes;
  for (const std::int64_t n : lengths) sizes.push_back(sizes_of(n, n));
  return sizes;
}

// 69 824 tokens of queries and of keys, few pairs; sequences of both lengths begin past 2^16.
std::string many_tokens() {
  std::string mask = "cu";
  constexpr int kTimes = 32;
  for (int k = 0; k < kTimes; ++k) mask += "_3x2179_2179x3";
  return mask;
}

// Some 2^16 positions and more, also for those who serve multiples of a tile.
const std::vector<std::int64_t>& past_16_bits() {
  static const std::vector<std::int64_t> lengths{65793, 66048, 131072, 32768, 16384};
  return lengths;
}

Words over(std::int64_t queries, const std::vector<std::int64_t>& lengths) {
  Words sizes;
  for (const std::int64_t keys : lengths) sizes.push_back(sizes_of(queries, keys));
  return sizes;
}

Words many_queries_over(std::int64_t keys) {
  Words sizes;
  for (const std::int64_t queries : past_16_bits()) sizes.push_back(sizes_of(queries, keys));
  return sizes;
}

std::vector<Wish> wishes(Tier tier) {
  const Words causal{"causal_br", "causal_tl", "none"}, decode{"causal_br", "none"}, one{"hq=1"},
      grouped{"hq=2,hkv=1", "hq=1"};
  std::vector<Wish> all{
      {causal, squares({2211, 2240, 2304, 2048, 1536, 1024}), one, Values::normal},
      {decode, over(1, past_16_bits()), grouped, Values::maximum_last},
      {decode, over(4, {12301, 12352, 12416, 8192, 4096}), grouped, Values::ties},
      {{"none", "causal_tl"}, many_queries_over(2), one, Values::normal},
      {{many_tokens(), many_tokens() + "+causal_br"}, {"layout=thd"}, one, Values::normal},
      {causal, {"b=257,sq=1,sk=2", "b=257,sq=2,sk=2", "b=257,sq=16,sk=16"}, one, Values::normal}};
  if (tier == Tier::smoke) return all;
  all.push_back({causal, squares({2211, 2240, 2304}), {"hq=4,hkv=2", "hq=2"}, Values::x4});
  if (tier == Tier::full) {
    all.push_back({causal, squares({8209, 8256, 8448, 8192}), one, Values::normal});
  }
  return all;
}

// Where a fault of many keys is beyond the bounds soonest, first.
std::vector<DType> claimed_dtypes(const attest_description& description, Tier tier) {
  std::vector<DType> claimed;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    if ((description.dtypes >> abi(dtype) & 1U) != 0) claimed.push_back(dtype);
  }
  if (tier == Tier::smoke && claimed.size() > 1) claimed.resize(1);
  return claimed;
}

}  // namespace

std::vector<proptest::Case> long_cases(const attest_description& description, Tier tier,
                                       std::uint64_t values_seed) {
  constexpr std::uint64_t kStream = 0x6c6f6e67u;
  constexpr std::int32_t kThreads = 2;
  std::vector<proptest::Case> cases;
  if ((description.directions & ATTEST_FORWARD) == 0) return cases;
  for (const DType dtype : claimed_dtypes(description, tier)) {
    for (const Wish& wish : wishes(tier)) {
      const auto problem = nearest_claimed(description, dtype, wish);
      if (!problem) continue;
      const std::uint64_t seed = mix(mix(values_seed, kStream), cases.size());
      cases.push_back({*problem, wish.values, seed, kThreads});
    }
  }
  return cases;
}

}  // namespace attest::certify
