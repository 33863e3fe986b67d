#include "gpu/testing/call.hpp"

#include <algorithm>

#include "core/testing/nightly.hpp"

namespace attest::gpu::testing {

Call::Call(const std::string& text, std::uint32_t features)
    : attest::testing::Call(Problem::parse(text), 1, {.features = features}) {}

std::vector<std::uint64_t> Call::forward_bits(const attest_kernel& kernel) const {
  return (kernel.description.features & ATTEST_LSE) != 0 ? bits_of({&O, &LSE}) : O.bits();
}

const std::vector<const char*>& problems() {
  static const std::vector<const char*> all{
      "sq=33,d=8",
      "b=2,hq=4,hkv=2,sq=40,sk=70,d=24,dv=40,mask=causal_br",
      "sq=65,sk=65,d=5,mask=window_tl_7_3",
      "sq=100,sk=40,d=8,mask=window_tl_7_3",
      "b=3,hq=2,sq=20,sk=50,d=16,mask=lengths_50_0_13",
      "hq=3,sq=37,d=33,dv=129,softcap=3,alibi=standard",
      "hq=2,sq=40,sk=100,d=7,mask=random_3_1",
      "b=2,hq=2,hkv=1,sq=35,sk=34,d=9,dv=6,mask=causal_tl,strides=transposed",
      "b=2,hq=2,sq=5,sk=33,d=6,strides=interleaved",
      "sq=3,sk=35,d=40,dv=300,mask=causal_br,strides=padded",
      "sq=3,sk=40,d=136,dv=152,mask=causal_br"};
  return all;
}

std::vector<std::string> spellings_for(const attest_kernel& kernel, const char* text) {
  const auto takes = [&](attest_dtype dtype) {
    return (kernel.description.dtypes & 1U << dtype) != 0;
  };
  std::vector<std::string> all;
  if (takes(ATTEST_F32)) all.emplace_back(text);
  if (takes(ATTEST_BF16)) all.push_back(std::string(text) + ",dtype=bf16");
  if (takes(ATTEST_F16)) all.push_back(std::string(text) + ",dtype=f16");
  return all;
}

std::string spelled_for(const attest_kernel& kernel, const char* text) {
  return spellings_for(kernel, text).front();
}

const std::vector<const char*>& sequence_problems() {
  static const std::vector<const char*> all{"hq=4,hkv=2,d=8,dv=12,mask=cu_40x70_3x0_0x5_33x31",
                                            "hq=2,d=8,mask=cu_5x9_70x33+causal_br",
                                            "b=2,sq=5,sk=0,d=8", "sq=0,sk=7,d=8"};
  return all;
}

const std::vector<const char*>& backward_problems() {
  static const std::vector<const char*> all = [] {
    std::vector<const char*> more = problems();
    more.insert(more.end(), sequence_problems().begin(), sequence_problems().end());
    for (const char* text :
         {"hq=4,hkv=2,d=8,mask=cu_3x5_0x7_40x33_9x0+causal_br", "sq=50,sk=20,d=8,mask=causal_br",
          "b=2,hq=2,sq=70,sk=90,d=8,mask=random_1_5", "sq=17,sk=33,d=264,dv=512",
          "sq=1,sk=17,d=576"}) {
      more.push_back(text);
    }
    return more;
  }();
  return all;
}

const std::vector<const char*>& block_problems() {
  static const std::vector<const char*> all{
      "hq=2,sq=70,sk=130,d=8,mask=block_32_40_1",
      "sq=90,sk=110,d=5,dv=9,mask=block_64x48_50_2",
      "b=2,hq=4,hkv=2,sq=40,sk=70,d=9,dv=6,mask=block_8x4_20_3+causal_br",
      "sq=45,sk=37,d=4,mask=block_1_6_1",
      "sq=70,sk=70,d=4,mask=block_3x7_10_4+window_9_2",
      "sq=65,sk=66,d=4,mask=block_16x17_0_1",
      "sq=40,sk=40,d=4,mask=block_1000_100_1",
      "sq=90,sk=40,d=33,mask=blockband_16_0+causal_tl",
      "hq=4,hkv=2,d=8,dv=12,mask=cu_40x70_3x0_0x5_33x31+block_8x16_40_2",
      "hq=2,d=8,mask=cu_5x9_70x33+causal_br+block_24x5_50_4",
      "b=3,hq=2,sq=20,sk=50,d=16,mask=lengths_50_0_13+block_4x8_50_3",
      "hq=2,sq=64,sk=64,d=8,softcap=3,alibi=standard,mask=butterfly_16+window_tl_40_9",
      "sq=18,sk=34,d=260,dv=40,mask=block_8x12_50_1,strides=padded",
      "sq=0,sk=7,d=8,mask=block_4_50_1"};
  return all;
}

std::vector<const char*> problems_of(std::uint32_t features) {
  std::vector<const char*> all = problems();
  if ((features & ATTEST_BLOCK_MASK) != 0) {
    all.insert(all.end(), block_problems().begin(), block_problems().end());
  }
  return all;
}

std::vector<simt::Emulation> checked_orders() {
  // Descending and shuffled by two threads; in ci/nightly also ascending and another shuffle.
  std::vector<simt::Emulation> all(attest::testing::is_nightly() ? 4 : 2);
#ifdef ATTEST_HOOKED_KERNELS
  for (simt::Emulation& emulation : all) emulation.shared_checks = simt::SharedChecks::on;
#endif
  all[0].order = simt::Order::descending;
  all[1].order = simt::Order::shuffled;
  all[1].seed = 7;
  all[1].threads = 2;
  for (std::size_t k = 3; k < all.size(); ++k) all[k].order = simt::Order::shuffled;
  return all;
}

TileWords visited_tiles(const Problem& problem, std::int64_t block_q, std::int64_t block_k) {
  TileWords words;
  for (const Sequence& sequence : problem.sequences()) {
    std::vector<std::int64_t> keys_of(static_cast<std::size_t>(sequence.k_length / block_k + 1));
    for (std::int64_t q = 0; q < sequence.q_length; q += block_q) {
      const std::int64_t rows = std::min(block_q, sequence.q_length - q);
      bool any = false;
      for (std::int64_t k = 0; k < sequence.k_length; k += block_k) {
        const std::int64_t keys = std::min(block_k, sequence.k_length - k);
        std::int64_t visible = 0;
        for (std::int64_t i = q; i < q + rows; ++i) {
          for (std::int64_t j = k; j < k + keys; ++j) {
            visible += problem.mask.visible(sequence, i, j) ? 1 : 0;
          }
        }
        if (visible == 0) continue;
        any = true;
        ++words.tiles;
        words.bit_words += visible < rows * keys ? (rows * keys + 31) / 32 : 0;
        words.tile_queries += rows;
        words.tile_keys += keys;
        keys_of[static_cast<std::size_t>(k / block_k)] = keys;
      }
      words.queries += any ? rows : 0;
    }
    for (const std::int64_t keys : keys_of) words.keys += keys;
    words.all_keys += sequence.k_length;
    words.query_blocks += (sequence.q_length + block_q - 1) / block_q;
    words.key_blocks += (sequence.k_length + block_k - 1) / block_k;
  }
  return words;
}

}  // namespace attest::gpu::testing
