#include "certify/plan/long_problems.hpp"

#include <array>
#include <optional>
#include <string>

#include "core/dtype/dtype.hpp"
#include "core/rng.hpp"
#include "proptest/judge/claims.hpp"
#include "proptest/judge/run.hpp"

namespace attest::certify {
namespace {

using proptest::Tier;
using proptest::Values;

using Words = std::vector<std::string>;

// One long problem: what is wanted first, and what will do where that is not claimed.
struct Wish {
  Words masks, sizes, heads, head_dims;
  Values values = Values::normal;
};

// Head dimensions between those for which kernels choose tiles and paths, the ones in use first.
// Latent attention has keys of 576 and values of 512.
enum Heads : std::uint8_t { to_64, to_128, to_256, beyond };

const Words& heads_of(Heads size) {
  static const std::array<Words, 4> words{{{"d=64", "d=48", "d=40", "d=56"},
                                           {"d=128", "d=96", "d=112", "d=80", "d=72"},
                                           {"d=256", "d=192", "d=160", "d=224"},
                                           {"d=576,dv=512", "d=576", "d=512", "d=320"}}};
  return words[size];
}

// Long problems cost least with the smallest heads.
const Words& smallest_heads() {
  static const Words words{"d=8",  "d=16", "d=32",  "d=40",  "d=48",  "d=64",
                           "d=80", "d=96", "d=112", "d=128", "d=192", "d=256"};
  return words;
}

std::optional<Problem> nearest_claimed(const attest_description& description, DType dtype,
                                       const Wish& wish) {
  for (const std::string& mask : wish.masks) {
    for (const std::string& sizes : wish.sizes) {
      for (const std::string& heads : wish.heads) {
        for (const std::string& d : wish.head_dims) {
          Problem problem = Problem::parse(heads + "," + sizes + "," + d + ",mask=" + mask +
                                           ",dtype=" + std::string(name(dtype)));
          if (proptest::unclaimed(description, problem, Direction::forward).empty()) {
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

// Causal squares and decoding with heads of every size that is claimed.
void add_by_head_dim(Tier tier, const Words& causal, const Words& decode, std::vector<Wish>& all) {
  const Words one{"hq=1"}, seven{"hq=7,hkv=1", "hq=1"}, four{"hq=4,hkv=1", "hq=2,hkv=1", "hq=1"},
      two_of_four{"hq=8,hkv=2", "hq=2,hkv=1", "hq=1"};
  const Words rows_1031 = squares({1031, 1040, 1088, 1024, 512}),
              rows_521 = squares({521, 528, 576, 512, 256}),
              keys_4099 = over(1, {4099, 4112, 4160, 4096, 2048});
  all.push_back({causal, rows_1031, one, heads_of(to_64), Values::normal});
  all.push_back({causal, rows_1031, one, heads_of(to_128), Values::normal});
  all.push_back({causal, rows_521, one, heads_of(to_256), Values::normal});
  all.push_back({causal, squares({261, 272, 320, 256}), one, heads_of(beyond), Values::normal});
  all.push_back({decode, keys_4099, two_of_four, heads_of(to_64), Values::normal});
  all.push_back({decode, keys_4099, seven, heads_of(to_128), Values::normal});
  all.push_back({decode, keys_4099, four, heads_of(to_256), Values::normal});
  all.push_back({decode, over(1, {1031, 1040, 1088, 1024}), one, heads_of(beyond), Values::normal});
  if (tier == Tier::smoke) return;
  const Words keys_16421 = over(1, {16421, 16432, 16448, 16384});
  all.push_back(
      {causal, squares({2211, 2240, 2304}), {"hq=2,hkv=1", "hq=1"}, heads_of(to_64), Values::x4});
  all.push_back({causal, squares({2211, 2240, 2304}), one, heads_of(to_128), Values::normal});
  all.push_back({decode, keys_16421, two_of_four, heads_of(to_64), Values::ties});
  all.push_back({decode, keys_16421, two_of_four, heads_of(to_128), Values::normal});
  if (tier == Tier::fast) return;
  all.push_back({causal, squares({8209, 8256, 8448, 8192}), one, heads_of(to_64), Values::normal});
  all.push_back({causal, squares({4111, 4112, 4160, 4096}), one, heads_of(to_128), Values::normal});
}

std::vector<Wish> wishes(Tier tier) {
  const Words causal{"causal_br", "causal_tl", "none"}, decode{"causal_br", "none"}, one{"hq=1"},
      grouped{"hq=2,hkv=1", "hq=1"}, smallest = smallest_heads();
  Words in_use{"d=32"};  // many rows cost little where there are few keys
  in_use.insert(in_use.end(), heads_of(to_64).begin(), heads_of(to_64).end());
  in_use.insert(in_use.end(), smallest.begin(), smallest.end());
  std::vector<Wish> all{
      {causal, squares({2211, 2240, 2304, 2048, 1536, 1024}), one, smallest, Values::normal},
      {decode, over(1, past_16_bits()), grouped, smallest, Values::maximum_last},
      {decode, over(4, {12301, 12352, 12416, 8192, 4096}), grouped, smallest, Values::ties},
      {{"none", "causal_tl"}, many_queries_over(2), one, in_use, Values::normal},
      {{many_tokens(), many_tokens() + "+causal_br"},
       {"layout=thd"},
       one,
       smallest,
       Values::normal},
      {causal,
       {"b=257,sq=1,sk=2", "b=257,sq=2,sk=2", "b=257,sq=16,sk=16"},
       one,
       smallest,
       Values::normal}};
  add_by_head_dim(tier, causal, decode, all);
  if (tier == Tier::full) {
    all.push_back({causal, squares({8209, 8256, 8448, 8192}), one, smallest, Values::normal});
  }
  return all;
}

// Smoke asks of every type but the first the square and the row of more than 2^16 keys, the first
// two of wishes(): paths of their own for a type fail there, and the others take most of the time.
std::vector<Wish> wishes_of(Tier tier, bool first_type) {
  std::vector<Wish> all = wishes(tier);
  constexpr std::size_t kOfOtherTypes = 2;
  if (tier == Tier::smoke && !first_type) all.resize(kOfOtherTypes);
  return all;
}

}  // namespace

std::vector<proptest::Case> long_cases(const attest_description& description, Tier tier,
                                       std::uint64_t values_seed) {
  constexpr std::uint64_t kStream = 0x6c6f6e67u;
  constexpr std::int32_t kThreads = 2;
  std::vector<proptest::Case> cases;
  if ((description.directions & ATTEST_FORWARD) == 0) return cases;
  const std::vector<DType> dtypes = proptest::claimed_dtypes(description);
  for (const DType dtype : dtypes) {
    for (const Wish& wish : wishes_of(tier, dtype == dtypes.front())) {
      const auto problem = nearest_claimed(description, dtype, wish);
      if (!problem) continue;
      const std::uint64_t seed = mix(mix(values_seed, kStream), cases.size());
      cases.push_back({*problem, wish.values, seed, kThreads});
    }
  }
  return cases;
}

}  // namespace attest::certify
