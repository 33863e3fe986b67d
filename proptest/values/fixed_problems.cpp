#include "proptest/values/fixed_problems.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/dtype/dtype.hpp"
#include "core/error.hpp"
#include "core/features/score_features.hpp"
#include "core/rng.hpp"
#include "proptest/judge/claims.hpp"

namespace attest::proptest {
namespace {

// Fixed part of a problem: all but head dimensions, dtype and layout. The mask stands apart because
// it may lose parts.
struct Template {
  std::string_view sizes, mask;
  const ScoreFeature* feature = nullptr;

  std::string text() const {
    const std::string all(sizes);
    return feature == nullptr ? all : all + "," + feature->word + "=" + feature->example;
  }
};

constexpr std::array kTemplates{
    // One query, as in decoding.
    Template{"b=2,hq=4,hkv=2,sq=1,sk=129", "none"},
    Template{"b=2,hq=4,hkv=2,sq=1,sk=129", "random_70_3+window_20_0"},
    Template{"b=3,hq=4,hkv=2,sq=1,sk=257", "lengths_66_257_129+causal_br"},
    Template{"b=3,hq=4,hkv=2,sq=1,sk=257", "lengths_257_1_130+window_7_0"},
    Template{"b=2,hq=6,hkv=2,sq=1,sk=1025", "causal_br"},
    Template{"b=2,hq=2,hkv=1,sq=1,sk=1025", "window_9_0"},
    Template{"hq=4,hkv=2", "cu_1x129_1x3_1x257+causal_br"},
    Template{"hq=4,hkv=2", "cu_1x3_1x257_1x129+window_7_0"},
    Template{"hq=4,hkv=2", "cu_1x65_1x0_1x3"},
    // One key.
    Template{"b=3,hq=2,sq=1,sk=1", "none"},
    Template{"b=2,hq=4,hkv=2,sq=17,sk=1", "none"},
    Template{"hq=2", "cu_5x1_1x3_3x1"},
    // No key.
    Template{"b=2,hq=2,sq=3,sk=0", "none"},
    // Masks of several parts, with fewer queries than keys and windows of fewer keys than there
    // are.
    Template{"b=2,hq=2,sq=5,sk=21", "lengths_21_9+window_3_1"},
    Template{"b=2,hq=2,sq=5,sk=21", "random_80_2+window_5_1"},
    Template{"hq=2", "cu_3x9_5x7+random_85_4+window_4_2"},
    Template{"b=2,hq=2,sq=5,sk=21", "lengths_21_9+random_85_2"},
    // Aligned keys on both sides of a power of two.
    Template{"sq=3,sk=65", "causal_br"},
    Template{"sq=3,sk=129", "causal_br"},
    Template{"sq=3,sk=257", "causal_br"},
    Template{"sq=3,sk=513", "causal_br"},
    Template{"sq=3,sk=1025", "causal_br"},
    Template{"sq=130,sk=130", "causal_tl"},
    // Chunks that a window or the key lengths hide as a whole: the first, the last, both.
    Template{"sq=3,sk=129", "window_9_0"},
    Template{"sq=3,sk=1025", "window_5_0"},
    Template{"sq=3,sk=650", "window_tl_2_2"},
    Template{"b=2,sq=3,sk=1100", "lengths_513_1025+window_5_0"},
    Template{"sq=257,sk=257", "window_9_0"},
    Template{"sq=513,sk=3", "window_2_0"},
    // Windows wider than a tile, to the left and to the right, of fewer keys than there are.
    Template{"sq=3,sk=1025", "window_300_0"},
    Template{"sq=3,sk=2100", "window_1030_0"},
    Template{"sq=3,sk=650", "window_tl_2_300"},
    // Minus infinity at masked keys becomes plus infinity where the scale is multiplied afterwards.
    Template{"hq=2,sq=5,sk=9,scale=-0.25", "causal_br"},
    Template{"hq=2,sq=5,sk=9,scale=-0.25", "causal_tl"},
    // Sinks of several heads and batch entries, with rows that see no key; with the first chunk
    // hidden; beside a scale and a softcap that do not concern them.
    Template{"b=2,hq=3,sq=5,sk=3,sinks=drawn_4", "causal_br"},
    Template{"hq=2,sq=3,sk=129,sinks=drawn_4", "window_9_0"},
    Template{"hq=2,sq=3,sk=9,scale=0.3,sinks=drawn_4", "none"},
    Template{"hq=2,sq=3,sk=9,softcap=2,sinks=drawn_4", "none"},
    // Biases: all extents alike, so that no check of shapes tells its axes apart; keys that end
    // within a tile, under a causal mask; groups of heads; rows and keys that it hides; beside a
    // scale and a softcap that do not concern it.
    Template{"b=3,hq=3,sq=3,sk=3,bias=bhqk_drawn_4", "none"},
    Template{"b=2,hq=4,hkv=2,sq=17,sk=21,bias=hqk_f32_drawn_4", "causal_br"},
    Template{"b=2,hq=2,sq=9,sk=21,bias=bhqk_holes_4", "lengths_21_9"},
    Template{"hq=2,bias=bhk_drawn_4", "cu_3x9_5x7+causal_br"},
    Template{"hq=2,sq=3,sk=9,scale=0.3,softcap=2,bias=k_holes_3", "none"},
    Template{"b=2,hq=2,sq=5,sk=9,bias=bhq_drawn_4", "causal_tl"},
    // Masks of heads: all extents alike, so that no check of shapes tells its axes apart; groups of
    // heads; masks that all heads or all batch entries share; packed sequences; beside sinks.
    Template{"b=3,hq=3,sq=3,sk=3,head_mask=bhqk_50_4", "none"},
    Template{"b=2,hq=4,hkv=2,sq=9,sk=21,head_mask=bhqk_60_5", "causal_br"},
    Template{"b=2,hq=3,sq=5,sk=9,head_mask=bk_60_4", "lengths_9_4"},
    Template{"b=2,hq=2,sq=5,sk=9,head_mask=hqk_50_3", "random_70_2"},
    Template{"hq=2,head_mask=bhk_60_4", "cu_3x9_5x7+causal_br"},
    Template{"b=2,hq=2,sq=5,sk=3,sinks=drawn_4,head_mask=bhq_50_2", "none"},
    // Query lengths: of several batch entries, under causal masks of both alignments, beside key
    // lengths and sinks, of packed sequences.
    Template{"b=4,hq=2,sq=9,sk=9,query_lengths=drawn_3", "causal_br"},
    Template{"b=3,hq=4,hkv=2,sq=5,sk=21,query_lengths=drawn_5", "lengths_21_9_4+window_3_1"},
    Template{"b=3,hq=2,sq=5,sk=7,sinks=drawn_4,query_lengths=drawn_4", "causal_tl"},
    Template{"hq=2,query_lengths=drawn_2", "cu_3x9_5x7_4x4+causal_br"},
    // Windows with both ends on one side of the aligned key, next to it and far from it, with one
    // end, and with ends that pass each other.
    Template{"b=2,hq=2,sq=9,sk=9", "window_tl_inf_-1"},
    Template{"b=2,hq=2,sq=5,sk=21", "window_-1_inf"},
    Template{"hq=2,sq=9,sk=21", "window_tl_-1_4"},
    Template{"hq=2,sq=9,sk=21", "window_7_-2"},
    Template{"hq=2,sq=3,sk=257", "window_200_-100"},
    Template{"sq=5,sk=9", "window_7_-8"},
    Template{"hq=2", "cu_3x9_5x7+window_-1_3"},
    // Pages: filled to the last slot, of lengths 0 and 1, hidden by a window, of packed sequences;
    // as many as batch entries, heads and keys; of numbers past 16 bits; none free.
    Template{"b=3,hq=2,sq=1,sk=64,paged_kv=16_4", "lengths_32_16_64"},
    Template{"b=4,hq=2,hkv=1,sq=1,sk=48,paged_kv=16_5", "lengths_0_1_17_48"},
    Template{"hq=2,sq=3,sk=257,paged_kv=16_8", "window_9_0"},
    Template{"hq=2,paged_kv=16_5", "cu_1x33_3x16_2x0"},
    Template{"b=3,hq=3,sq=3,sk=3,paged_kv=3_6_3", "causal_br"},
    Template{"b=2,sq=1,sk=5,paged_kv=1_3_131072", "none"},
    Template{"b=2,hq=2,sq=2,sk=129,paged_kv=7_3_1", "causal_br"},
    // K = V, of several heads.
    Template{"b=2,hq=4,hkv=2,sq=5,sk=9,shared_kv=first", "causal_br"},
};

// K and V in one buffer: V as the first and the last columns of K, K as those of V, and the widths
// of multi-head latent attention (DeepSeek-V2, Liu et al. 2024: 512 + 64 and 128 + 64 columns).
constexpr std::array<std::string_view, 5> kSharedShapes{
    "b=2,hq=4,hkv=2,sq=5,sk=9,d=24,dv=16,mask=causal_br,shared_kv=first",
    "hq=2,sq=5,sk=9,d=24,dv=16,shared_kv=last", "hq=2,sq=3,sk=7,d=16,dv=24,shared_kv=first",
    "hq=4,hkv=1,sq=2,sk=33,d=576,dv=512,shared_kv=first",
    "hq=2,sq=17,sk=17,d=192,dv=128,mask=causal_br,shared_kv=first"};

// These, and the first one with each feature of the scores.
std::vector<Template> templates() {
  std::vector<Template> all(kTemplates.begin(), kTemplates.end());
  for (const ScoreFeature& feature : score_features()) {
    all.insert(all.begin() + 1, {all.front().sizes, all.front().mask, &feature});
  }
  return all;
}

// Random pairs in a form that is claimed; as they are where none is.
std::string in_claimed_form(const std::string& part, std::uint32_t features) {
  constexpr std::string_view kRandom = "random";
  if (part.rfind(kRandom, 0) != 0 || (features & ATTEST_BOOLEAN_MASK) != 0) return part;
  const std::string percent_and_seed = part.substr(kRandom.size());
  if ((features & ATTEST_CSR_MASK) != 0) return "pairs" + percent_and_seed;
  if ((features & ATTEST_BLOCK_MASK) != 0) return "block_4x4" + percent_and_seed;
  if ((features & ATTEST_NM_MASK) != 0) {
    return "nm_3_4" + percent_and_seed.substr(percent_and_seed.rfind('_'));
  }
  return part;
}

std::vector<std::string> parts_of(std::string_view mask, std::uint32_t features) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t plus = mask.find('+');
    parts.push_back(in_claimed_form(std::string(mask.substr(0, plus)), features));
    if (plus == std::string_view::npos) return parts;
    mask.remove_prefix(plus + 1);
  }
}

std::string joined(const std::vector<std::string>& parts, unsigned chosen) {
  std::string mask;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    if ((chosen >> part & 1u) != 0) mask += (mask.empty() ? "" : "+") + parts[part];
  }
  return mask.empty() ? "none" : mask;
}

bool claimed(const attest_description& d, const Problem& p) {
  return unclaimed(d, p, Direction::forward).empty() ||
         unclaimed(d, p, Direction::backward).empty();
}

// Finest first: a fault is beyond the bounds soonest there. f64, which few kernels have, is last.
std::vector<DType> finest_first(const attest_description& d) {
  std::vector<DType> dtypes = claimed_dtypes(d);
  const auto key = [](DType dtype) { return std::pair(dtype == DType::f64, unit_roundoff(dtype)); };
  std::sort(dtypes.begin(), dtypes.end(), [&](DType a, DType b) { return key(a) < key(b); });
  return dtypes;
}

std::int64_t within(const attest_extents& extents, std::int64_t size) {
  const std::int64_t multiple = std::max<std::int64_t>(extents.multiple, 1);
  size = (std::max(size, extents.least) + multiple - 1) / multiple * multiple;
  return extents.most > 0 ? std::min(size, extents.most / multiple * multiple) : size;
}

// The problem with sizes within the limits of the description; nothing where its lists do not go
// with them.
std::optional<Problem> limited(const attest_description& d, Problem problem) {
  if ((d.features & ATTEST_GQA) == 0) problem.num_heads_kv = problem.num_heads_q;
  if (d.limits == nullptr) return problem;
  const attest_limits& limits = *d.limits;
  if (!problem.mask.packed()) {
    problem.seqlen_q = within(limits.seqlen_q, problem.seqlen_q);
    problem.seqlen_k = within(limits.seqlen_k, problem.seqlen_k);
    if (limits.most_batch > 0) problem.batch = std::min(problem.batch, limits.most_batch);
  }
  if ((limits.only & ATTEST_ONLY_ONE_SCALE) != 0 && limits.softmax_scale != 0) {
    problem.softmax_scale = limits.softmax_scale;
  }
  try {
    return Problem::parse(problem.to_string());  // the mask of the new sizes
  } catch (const InvalidProblem&) {
    return std::nullopt;
  }
}

// The problem with the smallest head dimensions that make it a claimed one; nothing when none do.
std::optional<Problem> smallest_claimed(const attest_description& d, const std::string& text) {
  constexpr std::array<std::int64_t, 14> kDims{1,  2,  4,  8,  16,  24,  32,
                                               40, 64, 80, 96, 128, 192, 256};
  std::optional<Problem> problem = limited(d, Problem::parse(text + ",d=1"));
  if (!problem) return std::nullopt;
  problem->dtype = finest_first(d).front();
  const auto fits = [&](std::int64_t dim) {
    problem->head_dim_qk = problem->head_dim_v = dim;
    return claimed(d, *problem);
  };
  const auto some_dim_fits = [&] {
    return std::any_of(kDims.begin(), kDims.end(), fits) ||
           fits(std::max<std::int64_t>(d.head_dim_multiple, 1));
  };
  if (some_dim_fits()) return problem;
  if (problem->mask.banded()) return std::nullopt;
  // Tries the causal mask, for kernels that are always causal.
  problem->mask.window_right = 0;
  problem->mask.align = (d.features & ATTEST_CAUSAL_BOTTOM_RIGHT) != 0 ? CausalAlign::bottom_right
                                                                       : CausalAlign::top_left;
  return some_dim_fits() ? problem : std::nullopt;
}

// The claimed problems of a template: with the whole mask, or with every choice of its parts that
// is claimed and lies in no other. Packed sequences stay, for the sizes are theirs.
std::vector<Problem> problems_of(const attest_description& d, const Template& fixed) {
  const std::vector<std::string> parts = parts_of(fixed.mask, d.features);
  const unsigned all = (1u << parts.size()) - 1, kept = parts[0].rfind("cu_", 0) == 0 ? 1 : 0;
  std::vector<unsigned> found;
  std::vector<Problem> problems;
  for (unsigned chosen = all + 1; chosen-- > kept;) {
    const bool within = std::any_of(found.begin(), found.end(),
                                    [&](unsigned larger) { return (chosen & larger) == chosen; });
    if (within || (chosen & kept) != kept) continue;
    const auto problem = smallest_claimed(d, fixed.text() + ",mask=" + joined(parts, chosen));
    if (!problem) continue;
    found.push_back(chosen);
    problems.push_back(*problem);
  }
  return problems;
}

}  // namespace

std::vector<Case> fixed_cases(const attest_description& description, std::uint64_t seed) {
  constexpr std::uint64_t kStream = 0x66697865u;
  constexpr std::int32_t kMostThreads = 3;
  std::vector<Case> cases;
  std::set<std::string> known;
  const auto add = [&](Problem p) {
    const std::uint64_t turn = cases.size() + mix(seed, kStream) % 64;
    if (!p.mask.packed() && turn / 2 % 2 == 1) p.layout = Layout::bhsd;
    if (turn % 4 == 3) p.strides = Strides::padded;
    cases.push_back({p, Values::normal, mix(mix(seed, kStream), cases.size()),
                     static_cast<std::int32_t>(turn % kMostThreads) + 1});
  };
  for (const Template& fixed : templates()) {
    for (Problem& p : problems_of(description, fixed)) {
      if (!known.insert(p.to_string()).second) continue;
      for (const DType dtype : finest_first(description)) {
        p.dtype = dtype;
        add(p);
      }
    }
  }
  for (const std::string_view text : kSharedShapes) {
    Problem p = Problem::parse(text);
    for (const DType dtype : finest_first(description)) {
      p.dtype = dtype;
      if (claimed(description, p)) add(p);
    }
  }
  return cases;
}

}  // namespace attest::proptest
