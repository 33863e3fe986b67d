#include "certify/testing/problem_kinds.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace attest::certify {
namespace {

using P = attest_problem;

bool windowed(const P& p) { return p.mask.window_left >= 0 || p.mask.window_right > 0; }
bool causal(const P& p) { return p.mask.window_left < 0 && p.mask.window_right == 0; }
bool packed(const P& p) { return p.mask.cu_seqlens_q != nullptr; }
bool lengths(const P& p) { return p.mask.key_lengths != nullptr; }
bool grouped(const P& p) { return p.num_heads_q != p.num_heads_kv; }
bool several(const P& p) { return p.batch > 1; }
bool pairs(const P& p) {
  return p.mask.boolean != nullptr || p.mask.blocks != nullptr || p.mask.csr != nullptr ||
         p.mask.nm != nullptr;
}
bool one_query(const P& p) { return p.seqlen_q == 1 && p.seqlen_k > 1; }
bool tiles(const P& p) { return one_query(p) && p.seqlen_k > 128; }

// The longest sequence, or one of the longest stored: queries, keys and the key that query 0 is
// aligned with.
struct Longest {
  std::int64_t queries = 0, keys = 0, aligned = 0;
};

Longest longest(const P& p) {
  Longest found;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    std::int64_t queries = p.seqlen_q, keys = p.seqlen_k;
    if (packed(p)) {
      queries = p.mask.cu_seqlens_q[b + 1] - p.mask.cu_seqlens_q[b];
      keys = p.mask.cu_seqlens_k[b + 1] - p.mask.cu_seqlens_k[b];
    }
    if (lengths(p)) keys = p.mask.key_lengths[b];
    if (keys <= found.keys) continue;
    found = {queries, keys, p.mask.align == ATTEST_BOTTOM_RIGHT ? keys - queries : 0};
  }
  return found;
}

// A window of fewer keys than the smallest chunk, its keys all past the first chunk.
constexpr std::int64_t kChunk = 64;
bool narrow(const P& p) {
  return p.mask.window_left >= 0 && p.mask.window_right >= 0 &&
         p.mask.window_left + p.mask.window_right < kChunk;
}
bool first_chunk_hidden(const P& p) {
  return narrow(p) && longest(p).aligned - p.mask.window_left >= kChunk;
}
bool last_chunk_hidden(const P& p) {
  if (p.mask.window_right < 0) return false;
  const Longest l = longest(p);
  const std::int64_t seen = l.aligned + l.queries - 1 + p.mask.window_right;
  return !packed(p) && std::min(seen, l.keys - 1) < (p.seqlen_k - 1) / kChunk * kChunk;
}
template <std::int64_t chunk>
bool straddles(const P& p) {
  const Longest l = longest(p);
  return causal(p) && l.aligned < chunk && l.aligned + l.queries > chunk && l.keys > chunk;
}
bool fewer_in_window(const P& p) {
  return windowed(p) && p.seqlen_q < p.seqlen_k && p.mask.window_left >= 0 &&
         p.mask.window_left + p.mask.window_right + 1 < p.seqlen_k;
}

// A window of more keys than a number that hides some of the longest sequence on the left.
template <std::int64_t keys>
bool wide_left(const P& p) {
  return p.mask.window_left > keys && longest(p).aligned > p.mask.window_left;
}
bool wide_right(const P& p) {
  const Longest l = longest(p);
  return p.mask.window_right > 256 && l.aligned + p.mask.window_right + 1 < l.keys;
}

bool has_length(const P& p, std::int64_t length) {
  return lengths(p) && std::count(p.mask.key_lengths, p.mask.key_lengths + p.batch, length) > 0;
}
bool fills_pages(const P& p) {
  return p.paged_kv != nullptr && lengths(p) && p.paged_kv->page_size > 1 &&
         std::all_of(p.mask.key_lengths, p.mask.key_lengths + p.batch,
                     [&](auto keys) { return keys > 0 && keys % p.paged_kv->page_size == 0; });
}
bool past_16_bits(const P& p) {
  if (p.paged_kv == nullptr) return false;
  const std::int32_t* const table = p.paged_kv->block_table;
  return *std::max_element(table, table + p.batch * p.paged_kv->max_pages) >= 65536;
}

bool offset_window(const P& p) {
  const attest_window_ends* const ends = p.mask.window_ends;
  return ends != nullptr && ((ends->left_unbounded == 0 && p.mask.window_left < 0) ||
                             (ends->right_unbounded == 0 && p.mask.window_right < 0));
}
// A mask with an entry for each index of an axis: batch, query head, query, key.
template <std::size_t axis>
bool mask_along(const P& p) {
  return p.mask.per_head != nullptr && p.mask.per_head->strides[axis] != 0;
}

bool any_empty(const P& p) {
  for (std::int64_t b = 0; packed(p) && b < p.batch; ++b) {
    if (p.mask.cu_seqlens_k[b] == p.mask.cu_seqlens_k[b + 1]) return true;
  }
  return p.seqlen_k == 0 ||
         (p.mask.window_right >= 0 && longest(p).aligned + p.mask.window_right < 0);
}

}  // namespace

const std::vector<ProblemKind>& problem_kinds() {
  static const std::vector<ProblemKind> kinds{
      {"one query", "sq=1,sk=129", one_query},
      {"one query, several batch entries", "b=2,sq=1,sk=129",
       [](const P& p) { return one_query(p) && several(p); }},
      {"one query, grouped heads, several batch entries, tiles of keys",
       "b=2,hq=4,hkv=2,sq=1,sk=129",
       [](const P& p) { return tiles(p) && grouped(p) && several(p); }},
      {"one query, more than 1024 keys", "sq=1,sk=1025",
       [](const P& p) { return one_query(p) && p.seqlen_k > 1024; }},
      {"one query, packed", "mask=cu_1x129_1x3", [](const P& p) { return tiles(p) && packed(p); }},
      {"one query, packed, grouped heads", "hq=4,hkv=2,mask=cu_1x129_1x3",
       [](const P& p) { return tiles(p) && packed(p) && grouped(p); }},
      {"one query, key lengths", "b=2,sq=1,sk=257,mask=lengths_129_257",
       [](const P& p) { return tiles(p) && lengths(p) && several(p); }},
      {"one query, a narrow window far from key 0", "sq=1,sk=257,mask=window_7_0",
       [](const P& p) { return tiles(p) && first_chunk_hidden(p); }},
      {"one query, a narrow window, packed", "mask=cu_1x129_1x257+window_7_0",
       [](const P& p) { return tiles(p) && packed(p) && first_chunk_hidden(p); }},
      {"one query, a narrow window, key lengths", "b=2,sq=1,sk=257,mask=lengths_130_257+window_7_0",
       [](const P& p) { return tiles(p) && lengths(p) && first_chunk_hidden(p); }},
      {"one query, a boolean mask", "sq=1,sk=129,mask=random_100_3",
       [](const P& p) { return tiles(p) && pairs(p); }},
      {"one query, ALiBi", "sq=1,sk=129,alibi=standard",
       [](const P& p) { return tiles(p) && p.alibi_slopes != nullptr; }},
      {"one query, softcap", "sq=1,sk=129,softcap=2",
       [](const P& p) { return tiles(p) && p.softcap > 0; }},
      {"one key", "sq=17,sk=1", [](const P& p) { return p.seqlen_k == 1 && p.seqlen_q > 1; }},
      {"one key, several batch entries", "b=2,sq=17,sk=1",
       [](const P& p) { return p.seqlen_k == 1 && several(p); }},
      {"one query and one key", "sq=1,sk=1",
       [](const P& p) { return p.seqlen_k == 1 && p.seqlen_q == 1; }},
      {"window and key lengths", "b=2,sq=5,sk=21,mask=lengths_21_9+window_3_1",
       [](const P& p) { return lengths(p) && fewer_in_window(p); }},
      {"window and boolean mask", "sq=5,sk=21,mask=random_100_2+window_5_1",
       [](const P& p) { return pairs(p) && fewer_in_window(p); }},
      {"window and packed", "mask=cu_3x9_5x7+window_3_2",
       [](const P& p) { return packed(p) && fewer_in_window(p); }},
      {"boolean mask and packed", "mask=cu_3x9_5x7+random_100_4",
       [](const P& p) { return packed(p) && pairs(p); }},
      {"aligned keys around 64", "sq=3,sk=65,mask=causal_br", straddles<64>},
      {"aligned keys around 128", "sq=3,sk=129,mask=causal_br", straddles<128>},
      {"aligned keys around 256", "sq=3,sk=257,mask=causal_br", straddles<256>},
      {"aligned keys around 512", "sq=3,sk=513,mask=causal_br", straddles<512>},
      {"aligned keys around 1024", "sq=3,sk=1025,mask=causal_br", straddles<1024>},
      {"aligned keys around 64, equal lengths", "sq=130,sk=130,mask=causal_tl",
       [](const P& p) { return straddles<64>(p) && p.seqlen_q == p.seqlen_k; }},
      {"first chunk hidden", "sq=3,sk=129,mask=window_9_0", first_chunk_hidden},
      {"last chunk hidden", "sq=3,sk=650,mask=window_tl_2_2", last_chunk_hidden},
      {"first and last chunk hidden", "b=2,sq=3,sk=1100,mask=lengths_513_1025+window_5_0",
       [](const P& p) { return first_chunk_hidden(p) && last_chunk_hidden(p); }},
      {"more queries than a chunk, a narrow window", "sq=257,sk=257,mask=window_9_0",
       [](const P& p) { return narrow(p) && p.seqlen_q > kChunk; }},
      {"a window of more than 256 keys", "sq=3,sk=1025,mask=window_300_0", wide_left<256>},
      {"a window of more than 1024 keys", "sq=3,sk=2100,mask=window_1030_0", wide_left<1024>},
      {"a window of more than 256 keys to the right", "sq=3,sk=650,mask=window_tl_2_300",
       wide_right},
      {"causal, top-left", "sq=3,sk=5,mask=causal_tl",
       [](const P& p) { return causal(p) && p.mask.align == ATTEST_TOP_LEFT; }},
      {"causal, bottom-right", "sq=3,sk=5,mask=causal_br",
       [](const P& p) { return causal(p) && p.mask.align == ATTEST_BOTTOM_RIGHT; }},
      {"window", "sq=5,mask=window_3_1", windowed},
      {"key lengths", "b=2,sq=5,mask=lengths_5_3", lengths},
      {"packed", "mask=cu_3x3_5x5", packed},
      {"boolean mask", "sq=5,mask=random_100_1",
       [](const P& p) { return p.mask.boolean != nullptr; }},
      {"blocks", "sq=5,mask=block_2x2_100_1", [](const P& p) { return p.mask.blocks != nullptr; }},
      {"compressed pairs", "sq=5,mask=pairs_100_1",
       [](const P& p) { return p.mask.csr != nullptr; }},
      {"N:M", "sq=5,mask=nm_1_1_1", [](const P& p) { return p.mask.nm != nullptr; }},
      {"a mask of heads", "hq=2,sq=5,head_mask=hqk_100_1", mask_along<1>},
      {"a mask of batch entries", "b=2,sq=5,head_mask=bqk_100_1", mask_along<0>},
      {"a mask of heads, packed", "hq=2,mask=cu_3x3_5x5,head_mask=bhqk_100_1",
       [](const P& p) { return packed(p) && mask_along<0>(p) && mask_along<1>(p); }},
      {"query lengths", "b=2,sq=5,query_lengths=3_5",
       [](const P& p) { return p.mask.query_lengths != nullptr; }},
      {"query lengths and key lengths", "b=2,sq=5,mask=lengths_5_3,query_lengths=3_5",
       [](const P& p) { return p.mask.query_lengths != nullptr && lengths(p); }},
      {"query lengths, packed", "mask=cu_3x3_5x5,query_lengths=2_5",
       [](const P& p) { return p.mask.query_lengths != nullptr && packed(p); }},
      {"a window on one side of the aligned key", "sq=5,mask=window_-1_3", offset_window},
      {"grouped heads", "hq=4,hkv=2,sq=5", grouped},
      {"another head dimension of V", "sq=5,dv=2",
       [](const P& p) { return p.head_dim_qk != p.head_dim_v; }},
      {"softcap", "sq=5,softcap=2", [](const P& p) { return p.softcap > 0; }},
      {"ALiBi", "sq=5,alibi=standard", [](const P& p) { return p.alibi_slopes != nullptr; }},
      {"pages", "b=2,sq=5,paged_kv=2_1", [](const P& p) { return p.paged_kv != nullptr; }},
      {"pages, key lengths that fill them", "b=3,sq=1,sk=64,mask=lengths_32_16_64,paged_kv=16_4",
       fills_pages},
      {"pages, key lengths of 0 and 1", "b=4,sq=1,sk=48,mask=lengths_0_1_17_48,paged_kv=16_5",
       [](const P& p) { return p.paged_kv != nullptr && has_length(p, 0) && has_length(p, 1); }},
      {"pages, packed", "paged_kv=16_5,mask=cu_1x33_3x16_2x0",
       [](const P& p) { return p.paged_kv != nullptr && packed(p); }},
      {"pages, as many as batch entries and heads", "b=3,hq=3,sq=3,sk=3,paged_kv=3_6_3",
       [](const P& p) {
         return p.paged_kv != nullptr && p.paged_kv->pages == p.batch && p.batch == p.num_heads_kv;
       }},
      {"pages, numbers past 16 bits", "b=2,sq=1,sk=5,paged_kv=1_3_131072", past_16_bits},
      {"negative scale", "sq=5,scale=-0.25", [](const P& p) { return p.softmax_scale < 0; }},
      {"fewer queries than keys", "sq=3,sk=5", [](const P& p) { return p.seqlen_q < p.seqlen_k; }},
      {"more queries than keys", "sq=5,sk=3", [](const P& p) { return p.seqlen_q > p.seqlen_k; }},
      {"rows without a key", "sq=3,sk=0", any_empty}};
  return kinds;
}

std::set<std::string> kinds_of(const attest_problem& problem) {
  std::set<std::string> names;
  for (const ProblemKind& kind : problem_kinds()) {
    if (kind.holds(problem)) names.emplace(kind.name);
  }
  return names;
}

std::set<std::string> kinds_of(const Problem& problem, std::uint32_t features) {
  return kinds_of(*AbiProblem(problem, 1, features).get());
}

std::set<std::string> claimed_kinds(const attest_description& description, Direction direction) {
  constexpr std::array<std::int64_t, 8> kDims{1, 8, 16, 32, 64, 80, 128, 256};
  std::set<std::string> names;
  for (const ProblemKind& kind : problem_kinds()) {
    Problem problem = Problem::parse(std::string(kind.witness) + ",d=1");
    const std::int64_t ratio = problem.head_dim_v;
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
      problem.dtype = dtype;
      const bool claimed = std::any_of(kDims.begin(), kDims.end(), [&](std::int64_t dim) {
        problem.head_dim_qk = dim;
        problem.head_dim_v = ratio * dim;
        return proptest::unclaimed(description, problem, direction).empty();
      });
      // As pairs in a form that is claimed, another than the kind's perhaps.
      const bool of_kind = kind.holds(*AbiProblem(problem, 1, description.features).get());
      if (claimed && of_kind) names.emplace(kind.name);
    }
  }
  return names;
}

}  // namespace attest::certify
