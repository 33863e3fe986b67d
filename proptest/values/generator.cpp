#include "proptest/values/generator.hpp"

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "proptest/judge/limits.hpp"
#include "proptest/values/draw_pairs.hpp"
#include "proptest/values/draws.hpp"
#include "proptest/values/kept_keys.hpp"
#include "proptest/values/score_draws.hpp"

namespace attest::proptest {
namespace {

// How large what is drawn may be.
enum class Sizes : std::uint8_t { small, smoke, more };

std::int64_t sequence_length(Rng& rng, Sizes sizes) {
  constexpr std::array<std::int64_t, 12> kTiny{1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17};
  constexpr std::array<std::int64_t, 20> kSmall{1,  2,  3,  5,  7,  8,  15, 16, 17, 31,
                                                32, 33, 37, 63, 64, 65, 66, 29, 13, 4};
  constexpr std::array<std::int64_t, 8> kLarge{97, 127, 128, 129, 130, 191, 192, 193};
  if (sizes != Sizes::small && chance(rng, sizes == Sizes::smoke ? 10 : 25)) {
    return pick(rng, kLarge);
  }
  if (chance(rng, 3)) return 0;
  return sizes == Sizes::small ? pick(rng, kTiny) : pick(rng, kSmall);
}

// The head dimensions that the kernel takes, of those that campaigns go through.
std::vector<std::int64_t> head_dims(const attest_description& description, Sizes sizes) {
  constexpr std::int64_t kMostOfSmall = 40;
  constexpr std::array<std::int64_t, 19> kDims{1,  2,  3,  8,  16,  17,  32,  33,  40, 48,
                                               64, 72, 80, 96, 112, 128, 160, 192, 256};
  std::vector<std::int64_t> known = listed_head_dims(description);
  if (known.empty()) known.assign(kDims.begin(), kDims.end());
  std::vector<std::int64_t> dims;
  for (const std::int64_t dim : known) {
    const bool fits = sizes != Sizes::small || dim <= kMostOfSmall;
    if (fits && claims_head_dim(description, dim)) dims.push_back(dim);
  }
  if (!dims.empty()) return dims;
  dims.push_back(nearest_head_dim(description, 1));
  const bool two = description.limits != nullptr && (description.features & ATTEST_HEAD_DIM_V) != 0;
  if (const auto other = two ? other_head_dim(description, dims.front()) : std::nullopt) {
    dims.push_back(*other);
  }
  return dims;
}

std::string draw_lengths(Rng& rng, const Problem& problem) {
  std::string text = "lengths";
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    text += "_" + std::to_string(rng.between(0, problem.seqlen_k));
  }
  return text;
}

std::string draw_packed(const attest_description& description, Rng& rng, Sizes sizes,
                        std::int64_t batch) {
  const bool cross = (description.features & ATTEST_CROSS_LENGTHS) != 0;
  std::vector<std::int64_t> queries, keys;
  for (std::int64_t b = 0; b < batch; ++b) {
    queries.push_back(sequence_length(rng, sizes));
    keys.push_back(cross ? sequence_length(rng, sizes) : queries.back());
  }
  if (description.limits != nullptr) {
    fit_longest(claimed_queries(description), queries);
    fit_longest(claimed_keys(description), keys);
  }
  std::string text = "cu";
  for (std::size_t b = 0; b < queries.size(); ++b) {
    text += "_" + std::to_string(queries[b]) + "x" + std::to_string(keys[b]);
  }
  return text;
}

std::string draw_band(Rng& rng, const Problem& problem) {
  const auto width = [&] {
    return chance(rng, 20)
               ? std::string("inf")
               : std::to_string(rng.between(0, std::max<std::int64_t>(problem.seqlen_k, 1)));
  };
  const std::int64_t kind = rng.between(0, 4);
  if (kind <= 1) return "causal_br";
  if (kind == 2) return "causal_tl";
  const std::string left = width(), right = width();
  return (kind == 3 ? "window_" : "window_tl_") + left + "_" + right;
}

bool claims_empty_rows(const attest_description& description) {
  return (description.features & ATTEST_EMPTY_ROWS) != 0;
}

// A window with both ends anywhere, one of them on the other side of the aligned key, from a stream
// of its own: for half of the windows of kernels that take them. A kernel that claims no rows
// without a key keeps its window where the other one makes such.
void move_window(const attest_description& description, std::uint64_t seed, Problem& problem) {
  Pattern& mask = problem.mask;
  if ((description.features & ATTEST_OFFSET_WINDOW) == 0 || !mask.banded()) return;
  Rng rng(seed, ATTEST_OFFSET_WINDOW);
  if (!chance(rng, 40)) return;
  const std::int64_t most = std::max<std::int64_t>(problem.seqlen_k, 1),
                     near = chance(rng, 60) ? -1 : -rng.between(1, most), other = -near;
  const bool unbounded = chance(rng, 30);
  const std::int64_t far = unbounded ? Pattern::kUnbounded : other + rng.between(-1, most);
  const bool left = chance(rng, 50), takes_empty = claims_empty_rows(description);
  const Pattern before = mask;
  mask.set_window(left ? near : far, left ? far : near);
  if (!takes_empty && !rows_without_a_key(problem).empty()) mask = before;
}

void draw_mask(const attest_description& description, Rng& rng, Sizes sizes, Problem& problem) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : "+") + part; };
  if (chance(rng, 15)) {
    add(draw_packed(description, rng, sizes, problem.batch));
    const Pattern packed = Pattern::parse_packed(text);
    problem.layout = Layout::thd;
    problem.seqlen_q = problem.seqlen_k = 0;
    for (std::size_t b = 0; b + 1 < packed.cu_seqlens_q.size(); ++b) {
      problem.seqlen_q = std::max<std::int64_t>(
          problem.seqlen_q, packed.cu_seqlens_q[b + 1] - packed.cu_seqlens_q[b]);
      problem.seqlen_k = std::max<std::int64_t>(
          problem.seqlen_k, packed.cu_seqlens_k[b + 1] - packed.cu_seqlens_k[b]);
    }
  } else if (chance(rng, 15)) {
    add(draw_lengths(rng, problem));
  }
  if (chance(rng, 45)) add(draw_band(rng, problem));
  if (chance(rng, claims_lists(description) ? 50 : 12)) {
    add(draw_pairs(rng, description, problem));
  }
  problem.mask = Pattern::parse(text.empty() ? "none" : text, problem.seqlen_q, problem.seqlen_k);
  fit_window(description, problem);
}

Values strong_values(Rng& rng) {
  constexpr std::array<Values, 6> kStrong{Values::indicator, Values::normal, Values::halves,
                                          Values::x4,        Values::normal, Values::indicator};
  return pick(rng, kStrong);
}

// Head dimensions take turns, from one that depends on the seed.
std::int64_t head_dim_of(const std::vector<std::int64_t>& dims, std::uint64_t seed,
                         std::uint64_t turn) {
  constexpr std::uint64_t kStream = 0x64696d73u;
  return dims[static_cast<std::size_t>((turn + mix(seed, kStream)) % dims.size())];
}

// Every other case goes through all families in turn, from one that depends on the seed; the others
// draw among those that refuse most. A head dimension has both kinds by turns.
Values values_of(std::size_t dims, std::uint64_t seed, std::uint64_t turn, Rng& rng) {
  constexpr std::uint64_t kStream = 0x76616c75u;
  if ((turn % dims + turn / dims) % 2 != 0) return strong_values(rng);
  const auto& all = all_values();
  return all[static_cast<std::size_t>((turn / 2 + mix(seed, kStream) % all.size()) % all.size())];
}

// All but shapes and values: threads, dtype.
Case draw_call(const attest_description& description, std::uint64_t seed, Rng& rng) {
  Case c;
  c.seed = seed;
  c.threads = static_cast<std::int32_t>(rng.between(1, 3));
  c.problem.dtype = pick(rng, claimed_dtypes(description));
  return c;
}

// Demand on a case's extents: two that are equal, for a kernel that exchanges their axes passes
// every check of shapes; or keys that end within a tile of the sizes in use although they fill a
// smaller one.
enum class Extents : std::uint8_t { any, batch_heads, heads_keys, dim_keys, dim_v_keys, part_tile };

// Extents of twelve cases that are no outliers: five are asked for something, each in its turn.
constexpr std::array<Extents, 12> kExtents{
    Extents::any, Extents::part_tile,  Extents::any, Extents::batch_heads,
    Extents::any, Extents::dim_keys,   Extents::any, Extents::any,
    Extents::any, Extents::heads_keys, Extents::any, Extents::dim_v_keys};

Extents extents_of(std::uint64_t turn) {
  return kExtents[static_cast<std::size_t>(turn % kExtents.size())];
}

void set_extents(Extents extents, Sizes sizes, std::uint64_t turn, Rng& rng, Problem& p) {
  const std::int64_t most_keys = sizes == Sizes::small ? 17 : 130;
  constexpr std::array<std::int64_t, 4> kPartTiles{64, 192, 64, 32};
  const std::int64_t few = rng.between(2, 3), heads = rng.between(2, 5), group = p.group_size();
  switch (extents) {
    case Extents::any:
      return;
    case Extents::batch_heads:
      p.batch = p.num_heads_kv = few;
      p.num_heads_q = few * (chance(rng, 50) ? 1 : group);
      return;
    case Extents::heads_keys:
      p.num_heads_kv = p.num_heads_q = p.seqlen_k = heads;
      break;
    case Extents::dim_keys:
      if (p.head_dim_qk <= most_keys) p.seqlen_k = p.head_dim_qk;
      break;
    case Extents::dim_v_keys:
      if (p.head_dim_v <= most_keys) p.seqlen_k = p.head_dim_v;
      break;
    case Extents::part_tile:
      p.seqlen_k = kPartTiles[static_cast<std::size_t>(turn / kExtents.size() % kPartTiles.size())];
      if (sizes == Sizes::small) p.seqlen_k = 16;
      break;
  }
  if (chance(rng, 20)) p.seqlen_q = p.seqlen_k;
}

// Numbers with more digits than the narrow types hold, in place of half of those that have few.
void draw_digits(Rng& rng, Problem& p) {
  constexpr std::int64_t kSeeds = 1000;
  const bool digits = chance(rng, 50);
  const double factor = static_cast<double>(rng.between(7001, 12999)) / 10000;
  const auto value_seed = static_cast<std::uint64_t>(rng.between(0, kSeeds));
  if (!digits) return;
  if (p.softmax_scale) p.softmax_scale = *p.softmax_scale * factor;
  for (const ScoreDraw& feature : score_draws()) feature.add_digits(p, factor, value_seed);
}

// From a stream of its own: of a kernel that takes no number of splits all else is drawn as before.
void draw_splits(const attest_description& description, std::uint64_t seed, Problem& p) {
  if ((description.features & ATTEST_SPLIT_INVARIANT) == 0) return;
  constexpr std::int64_t kMost = 8;
  Rng rng(seed, ATTEST_SPLIT_INVARIANT);
  if (chance(rng, 25)) p.num_splits = rng.between(1, kMost);
}

Case draw(const attest_description& description, Sizes sizes, std::uint64_t seed,
          const std::vector<std::int64_t>& dims, std::int64_t head_dim, std::uint64_t turn,
          Rng& rng, Rng& extras) {
  Case c = draw_call(description, seed, rng);
  Problem& p = c.problem;
  const bool small = sizes == Sizes::small;
  p.batch = chance(rng, small ? 80 : 60) ? 1 : rng.between(2, 3);
  p.num_heads_kv = chance(rng, small ? 75 : 50) ? 1 : rng.between(2, 3);
  p.num_heads_q = p.num_heads_kv * (chance(rng, small ? 75 : 60) ? 1 : rng.between(2, 4));
  p.seqlen_q = sequence_length(rng, sizes);
  p.seqlen_k = chance(rng, 50) ? p.seqlen_q : sequence_length(rng, sizes);
  p.head_dim_qk = head_dim;
  p.head_dim_v = chance(rng, 75) ? head_dim : pick(rng, dims);
  p.layout = chance(rng, 60) ? Layout::bshd : Layout::bhsd;
  if (chance(rng, 50)) {
    constexpr std::array<Strides, 8> kStrides{
        Strides::padded, Strides::transposed, Strides::interleaved, Strides::broadcast,
        Strides::huge,   Strides::mixed,      Strides::mixed,       Strides::mixed};
    p.strides = pick(rng, kStrides);
  }
  constexpr std::array<double, 6> kScales{0.0, -0.25, -0.25, 1.0, 0.125, 0.3};
  if (chance(rng, 18)) p.softmax_scale = pick(rng, kScales);
  for (const ScoreDraw& feature : score_draws()) {
    Rng own(seed, feature.claim);
    if (feature.apart && (description.features & feature.claim) == 0) continue;
    feature.draw(p, feature.apart ? own : rng);
  }
  draw_splits(description, seed, p);
  draw_digits(extras, p);
  const Extents extents = extents_of(turn);
  set_extents(extents, sizes, turn, extras, p);
  fit_sizes(description, p);
  const Problem unmasked = p;
  draw_mask(description, rng, sizes, p);
  move_window(description, seed, p);
  fit_window(description, p);
  // Packed sequences have extents of their own.
  const bool equal = extents != Extents::any && extents != Extents::part_tile;
  if (equal && p.mask.packed()) {
    p = unmasked;
    fit_window(description, p);
  }
  keep_a_key_in_each_row(description, p);
  return c;
}

// The loss has no softmax scale, and limits say nothing about one.
void fit_loss_sizes(const attest_description& description, Problem& p) {
  fit_sizes(description, p);
  p.softmax_scale.reset();
}

Case draw_loss(const attest_description& description, Sizes sizes, std::uint64_t seed,
               std::int64_t head_dim, Rng& rng) {
  Case c = draw_call(description, seed, rng);
  Problem& p = c.problem;
  p.seqlen_q = p.seqlen_k = std::max<std::int64_t>(sequence_length(rng, sizes), 1);
  p.head_dim_qk = p.head_dim_v = head_dim;
  if (chance(rng, 30)) {
    constexpr std::array<Strides, 4> kStrides{Strides::padded, Strides::transposed,
                                              Strides::interleaved, Strides::huge};
    p.strides = pick(rng, kStrides);
  }
  fit_loss_sizes(description, p);
  return c;
}

// One size beyond those of the other cases, and all else small: the cost stays that of the others.
enum class Outlier : std::uint8_t { none, keys, rows, heads, batches, window };

// Two cases in a row have the same outlier, for of a kernel with attention and loss gradient one of
// them is about the loss. Smoke campaigns have each once.
constexpr std::array<Outlier, 12> kOutliers{
    Outlier::none, Outlier::none,  Outlier::none, Outlier::keys,    Outlier::none, Outlier::rows,
    Outlier::none, Outlier::heads, Outlier::none, Outlier::batches, Outlier::none, Outlier::window};

Outlier outlier_of(Tier tier, std::uint64_t index) {
  const std::uint64_t pair = index / 2;
  if (tier == Tier::smoke && pair >= kOutliers.size()) return Outlier::none;
  return kOutliers[static_cast<std::size_t>(pair % kOutliers.size())];
}

// Cases past those of the tier come in pairs too; pairs that are no multiple of this are small. It
// has no divisor in common with the number of outliers, so that each has its turn.
constexpr std::uint64_t kSmallPairs = 31;

Sizes sizes_of(Tier tier, std::uint64_t index) {
  if (index >= tier_cases(tier) && index / 2 % kSmallPairs != 0) return Sizes::small;
  return tier == Tier::smoke ? Sizes::smoke : Sizes::more;
}

// How many cases before case `index` are no outliers.
std::uint64_t turn_of(Tier tier, std::uint64_t index) {
  constexpr std::uint64_t kPeriod = 2 * kOutliers.size();
  const auto plain = [tier](std::uint64_t first, std::uint64_t last) {
    std::uint64_t count = 0;
    for (std::uint64_t i = first; i < last; ++i) {
      count += outlier_of(tier, i) == Outlier::none ? 1 : 0;
    }
    return count;
  };
  if (index < kPeriod) return plain(0, index);
  const std::uint64_t rest = index % kPeriod, periods = index / kPeriod;
  return plain(0, kPeriod) + (periods - 1) * plain(kPeriod, 2 * kPeriod) +
         plain(index - rest, index);
}

std::int64_t long_length(Rng& rng, Tier tier) {
  constexpr std::array<std::int64_t, 3> kSmoke{641, 700, 1025};
  constexpr std::array<std::int64_t, 6> kFast{513, 640, 1023, 1024, 1025, 2049};
  constexpr std::array<std::int64_t, 6> kFull{513, 1025, 2047, 2049, 4096, 4097};
  if (tier == Tier::smoke) return pick(rng, kSmoke);
  return tier == Tier::fast ? pick(rng, kFast) : pick(rng, kFull);
}

// As many queries as keys: gradients pass through all of them.
std::int64_t long_square(Rng& rng, Tier tier) {
  constexpr std::array<std::int64_t, 3> kSmoke{257, 300, 321};
  constexpr std::array<std::int64_t, 4> kMore{257, 321, 513, 641};
  return tier == Tier::smoke ? pick(rng, kSmoke) : pick(rng, kMore);
}

// The fewest keys that such a window leaves something of.
constexpr std::int64_t kLeastOfWindows = 280;

// A window wider than the sequences of the other cases and narrower than this one's.
std::string wide_window(Rng& rng, std::int64_t length) {
  const std::string wide = std::to_string(rng.between(257, length - 20));
  const std::string narrow = chance(rng, 50) ? "inf" : std::to_string(rng.between(0, 9));
  return chance(rng, 70) ? "window_" + wide + "_" + narrow : "window_" + narrow + "_" + wide;
}

Case draw_outlier(const attest_description& description, Tier tier, Outlier outlier,
                  std::uint64_t seed, Rng& rng) {
  Case c = draw_call(description, seed, rng);
  Problem& p = c.problem;
  const bool cross = (description.features & ATTEST_CROSS_LENGTHS) != 0;
  const bool grouped = (description.features & ATTEST_GQA) != 0;
  p.head_dim_qk = p.head_dim_v = 8;
  p.seqlen_q = p.seqlen_k = rng.between(3, 9);
  switch (outlier) {
    case Outlier::none:
      throw InternalError("draw_outlier: none");
    case Outlier::keys:
      p.seqlen_k = cross ? long_length(rng, tier) : long_square(rng, tier);
      p.seqlen_q = cross ? rng.between(1, 3) : p.seqlen_k;
      break;
    case Outlier::rows:
      p.seqlen_q = long_square(rng, tier);
      p.seqlen_k = cross && chance(rng, 50) ? rng.between(3, 33) : p.seqlen_q;
      break;
    case Outlier::heads: {
      constexpr std::array<std::int64_t, 3> kGroups{1, 8, 64};
      p.num_heads_q = 64;
      p.num_heads_kv = grouped ? p.num_heads_q / pick(rng, kGroups) : p.num_heads_q;
      break;
    }
    case Outlier::batches:
      p.batch = rng.between(5, 9);
      break;
    case Outlier::window:
      p.seqlen_q = p.seqlen_k = rng.between(300, 340);
      break;
  }
  if (chance(rng, 30)) p.strides = Strides::padded;
  fit_sizes(description, p);
  if (outlier == Outlier::window && p.seqlen_k > kLeastOfWindows) {
    p.mask = Pattern::parse(wide_window(rng, p.seqlen_k), p.seqlen_q, p.seqlen_k);
  } else if ((outlier == Outlier::keys || outlier == Outlier::rows) && claims_lists(description) &&
             chance(rng, 70)) {
    p.mask = Pattern::parse(draw_pairs(rng, description, p), p.seqlen_q, p.seqlen_k);
  } else if (chance(rng, 40)) {
    p.mask = Pattern::parse(draw_band(rng, p), p.seqlen_q, p.seqlen_k);
  }
  fit_window(description, p);
  return c;
}

// The loss has no heads and no batch: its outliers are long.
Case draw_long_loss(const attest_description& description, std::uint64_t seed, Rng& rng) {
  Case c = draw_call(description, seed, rng);
  Problem& p = c.problem;
  p.seqlen_q = p.seqlen_k = long_length(rng, Tier::smoke);
  p.head_dim_qk = p.head_dim_v = 2;
  if (chance(rng, 30)) p.strides = Strides::padded;
  fit_loss_sizes(description, p);
  return c;
}

bool does_both(const attest_description& description) {
  return (description.directions & ATTEST_LOSS_GRADIENT) != 0 &&
         (description.directions & (ATTEST_FORWARD | ATTEST_BACKWARD)) != 0;
}

// Tells whether case `index` is about the loss gradient: every other one where a kernel does both.
bool about_the_loss(const attest_description& description, std::uint64_t index) {
  if ((description.directions & ATTEST_LOSS_GRADIENT) == 0) return false;
  return !does_both(description) || index % 2 == 1;
}

}  // namespace

std::string_view name(Tier tier) {
  switch (tier) {
    case Tier::smoke:
      return "smoke";
    case Tier::fast:
      return "fast";
    case Tier::full:
      break;
  }
  return "full";
}

std::uint64_t tier_cases(Tier tier) {
  switch (tier) {
    case Tier::smoke:
      return 60;
    case Tier::fast:
      return 150;
    case Tier::full:
      break;
  }
  return 2000;
}

Case generate(const attest_description& description, Tier tier, std::uint64_t seed,
              std::uint64_t index) {
  const std::uint64_t case_seed = mix(seed, index);
  const bool loss = about_the_loss(description, index);
  // Attention and loss gradient of one kernel share the turns.
  const std::uint64_t turn = turn_of(tier, index) / (does_both(description) ? 2 : 1);
  const Sizes sizes = sizes_of(tier, index);
  const std::vector<std::int64_t> dims = head_dims(description, sizes);
  const std::int64_t head_dim = head_dim_of(dims, seed, turn);
  Outlier outlier = sizes == Sizes::small ? Outlier::none : outlier_of(tier, index);
  if (outlier == Outlier::window && (description.features & ATTEST_WINDOW) == 0) {
    outlier = Outlier::rows;
  }
  // Draws from the one do not depend on draws from the other.
  Rng rng(case_seed, 0x67656eu), extras(case_seed, 0x657874u);
  const auto drawn = [&] {
    if (loss) {
      return outlier == Outlier::keys ? draw_long_loss(description, case_seed, rng)
                                      : draw_loss(description, sizes, case_seed, head_dim, rng);
    }
    return outlier == Outlier::none
               ? draw(description, sizes, case_seed, dims, head_dim, turn, rng, extras)
               : draw_outlier(description, tier, outlier, case_seed, rng);
  };
  // A kernel that claims little refuses many draws; the last resort is the plainest problem.
  constexpr int kDraws = 200;
  for (int attempt = 0; attempt < kDraws; ++attempt) {
    Case c = drawn();
    const auto claimed = [&](Direction direction) {
      return unclaimed(description, c.problem, direction).empty();
    };
    if (loss ? claimed(Direction::loss_gradient)
             : claimed(Direction::forward) || claimed(Direction::backward)) {
      c.values =
          outlier == Outlier::none ? values_of(dims.size(), seed, turn, rng) : strong_values(rng);
      return c;
    }
  }
  Case plain;
  plain.seed = case_seed;
  // A description that leaves nothing, as of no head dimension, is asked and refused by the laws.
  plain.problem =
      plainest_problem(description, loss ? Direction::loss_gradient : Direction::forward)
          .value_or(Problem::parse("sq=16,d=16"));
  return plain;
}

}  // namespace attest::proptest
