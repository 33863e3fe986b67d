#include "certify/plan/pairwise.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "certify/plan/score_levels.hpp"
#include "core/dtype/dtype.hpp"
#include "core/error.hpp"
#include "core/rng.hpp"
#include "proptest/judge/claims.hpp"
#include "proptest/judge/limits.hpp"
#include "proptest/values/kept_keys.hpp"

namespace attest::certify {
namespace {

using proptest::Case;

enum Factor : std::size_t {
  kMask,
  kDtype,
  kHeads,
  kLayout,
  kSizes,
  kValueDim,
  kScores,
  kBatch,
  kDirection
};
constexpr std::size_t kFactors = 9;

// One level of every factor.
using Levels = std::array<std::size_t, kFactors>;

struct FactorWords {
  const char* name;
  std::vector<const char*> levels;
};

enum Mask : std::size_t {
  kNone,
  kTopLeft,
  kBottomRight,
  kWindow,
  kLengths,
  kPacked,
  kBoolean,
  kWindowLengths,
  kWindowBoolean,
  kPackedWindow,
  kPackedBoolean,
  kOffsetWindow
};
enum Memory : std::size_t { kBshd, kBhsd, kThd, kStrided };
enum Sizes : std::size_t { kEven, kRagged, kFewerQueries, kMoreQueries, kOneQuery, kOneKey };

constexpr const auto& kDtypes = proptest::kDTypesOfCampaigns;

std::vector<const char*> names_of_dtypes() {
  std::vector<const char*> names;
  for (const DType dtype : kDtypes) names.push_back(facts(dtype).name.data());
  return names;
}

std::vector<const char*> names_of_score_levels() {
  std::vector<const char*> names;
  for (const ScoreLevel& level : score_levels()) names.push_back(level.name.c_str());
  return names;
}

const std::array<FactorWords, kFactors>& factors() {
  static const std::array<FactorWords, kFactors> all{{
      {"mask",
       {"none", "causal_tl", "causal_br", "window", "lengths", "packed", "boolean",
        "window_lengths", "window_boolean", "packed_window", "packed_boolean", "offset_window"}},
      {"dtype", names_of_dtypes()},
      {"heads", {"equal", "grouped"}},
      {"layout", {"bshd", "bhsd", "thd", "strided"}},
      {"sizes", {"even", "ragged", "fewer_queries", "more_queries", "one_query", "one_key"}},
      {"dv", {"equal", "other"}},
      {"scores", names_of_score_levels()},
      {"batch", {"one", "several"}},
      {"direction", {"forward", "backward", "loss_gradient"}},
  }};
  return all;
}

bool is_packed(std::size_t mask) {
  return mask == kPacked || mask == kPackedWindow || mask == kPackedBoolean;
}

std::size_t mask_of(const Pattern& mask) {
  const bool window = mask.banded() && (mask.left_bounded() || mask.window_right != 0);
  if (mask.packed()) return mask.boolean ? kPackedBoolean : window ? kPackedWindow : kPacked;
  if (mask.boolean) return window ? kWindowBoolean : kBoolean;
  if (!mask.key_lengths.empty()) return window ? kWindowLengths : kLengths;
  if (!mask.banded()) return kNone;
  if (window) return mask.offset ? kOffsetWindow : kWindow;
  return mask.align == CausalAlign::top_left ? kTopLeft : kBottomRight;
}

std::size_t sizes_of(const Problem& p) {
  constexpr std::int64_t kTile = 16;
  if (p.seqlen_q == 1 && p.seqlen_k > 1) return kOneQuery;
  if (p.seqlen_k == 1 && p.seqlen_q > 1) return kOneKey;
  if (p.seqlen_q != p.seqlen_k) return p.seqlen_q < p.seqlen_k ? kFewerQueries : kMoreQueries;
  return p.seqlen_q % kTile == 0 ? kEven : kRagged;
}

std::size_t memory_of(const Problem& p) {
  if (p.strides != Strides::packed) return kStrided;
  return p.layout == Layout::bshd ? kBshd : p.layout == Layout::bhsd ? kBhsd : kThd;
}

// The last level whose demands it meets: later ones demand more.
std::size_t scores_of(const Problem& p) {
  std::size_t level = score_levels().size() - 1;
  while (!score_levels()[level].lies_in(p)) --level;
  return level;
}

Levels levels_of(const Problem& p, Direction direction) {
  const auto dtype = std::find(kDtypes.begin(), kDtypes.end(), p.dtype) - kDtypes.begin();
  return {mask_of(p.mask),
          static_cast<std::size_t>(dtype),
          p.num_heads_q == p.num_heads_kv ? std::size_t{0} : std::size_t{1},
          memory_of(p),
          sizes_of(p),
          p.head_dim_qk == p.head_dim_v ? std::size_t{0} : std::size_t{1},
          scores_of(p),
          p.batch == 1 ? std::size_t{0} : std::size_t{1},
          static_cast<std::size_t>(direction)};
}

template <class Visit>
void for_each_pair(const Levels& levels, const Visit& visit) {
  for (std::size_t a = 0; a < kFactors; ++a) {
    for (std::size_t b = a + 1; b < kFactors; ++b) visit(a, levels[a], b, levels[b]);
  }
}

std::string spelled(std::size_t a, std::size_t level_a, std::size_t b, std::size_t level_b) {
  const auto word = [](std::size_t factor, std::size_t level) {
    return std::string(factors()[factor].name) + "=" + factors()[factor].levels[level];
  };
  return word(a, level_a) + " " + word(b, level_b);
}

// Which pairs are in a set, without their spelling.
class PairTable {
 public:
  char& at(std::size_t a, std::size_t level_a, std::size_t b, std::size_t level_b) {
    return table_[((a * most_ + level_a) * kFactors + b) * most_ + level_b];
  }

 private:
  static std::size_t most_levels() {
    std::size_t most = 0;
    for (const FactorWords& factor : factors()) most = std::max(most, factor.levels.size());
    return most;
  }

  std::size_t most_ = most_levels();
  std::vector<char> table_ = std::vector<char>(kFactors * most_ * kFactors * most_);
};

// Head dimensions (of Q and K, of V) that the kernel takes; nothing when it takes no other for V.
std::optional<std::pair<std::int64_t, std::int64_t>> head_dims(const attest_description& d,
                                                               std::size_t level,
                                                               std::int64_t wanted) {
  const std::int64_t dim = proptest::nearest_head_dim(d, wanted);
  if (level == 0) return std::pair(dim, dim);
  const std::optional<std::int64_t> other = proptest::other_head_dim(d, dim);
  return other ? std::optional(std::pair(dim, *other)) : std::nullopt;
}

// A mask of pairs in a form that the kernel claims.
std::string pairs_text(std::uint32_t features, Rng& rng) {
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  const std::int64_t percent = rng.between(60, 90), seed = rng.between(0, 1000);
  const std::string drawn = "_" + text(percent) + "_" + text(seed);
  if ((features & ATTEST_BOOLEAN_MASK) != 0) return "random" + drawn;
  if ((features & ATTEST_CSR_MASK) != 0) return "pairs" + drawn;
  if ((features & ATTEST_BLOCK_MASK) != 0) return "block_8x8" + drawn;
  return "nm_3_4_" + text(seed);
}

// A window in which every query sees a key, of fewer keys than there are where they are many.
std::string window_text(std::int64_t rows, std::int64_t keys, Rng& rng) {
  const std::int64_t left = rng.between(2, 5), right = rng.between(1, 4);
  return "window_" + std::to_string(left) + "_" +
         std::to_string(std::max<std::int64_t>(rows - keys, 0) + right);
}

// A window that lies to the right of the aligned key, to its left, or has one end.
std::string offset_window_text(Rng& rng) {
  constexpr std::array<const char*, 6> kWindows{"window_-1_4",    "window_5_-1",
                                                "window_inf_-1",  "window_-1_inf",
                                                "window_tl_4_-2", "window_tl_-2_6"};
  return kWindows[static_cast<std::size_t>(rng.between(0, 5))];
}

// One sequence of p's lengths, and where the batch is larger one half as long.
std::string packed_text(const Problem& p) {
  const auto sequence = [](std::int64_t q, std::int64_t k) {
    return "_" + std::to_string(q) + "x" + std::to_string(k);
  };
  return "cu" + sequence(p.seqlen_q, p.seqlen_k) +
         (p.batch == 1 ? "" : sequence((p.seqlen_q + 1) / 2, (p.seqlen_k + 1) / 2));
}

// A mask of the level for the sizes of `p`.
std::string mask_text(std::uint32_t features, std::size_t level, const Problem& p, Rng& rng) {
  const std::int64_t rows = p.seqlen_q, keys = p.seqlen_k;
  switch (level) {
    case kTopLeft:
      return "causal_tl";
    case kBottomRight:
      return "causal_br";
    case kWindow:
      return window_text(rows, keys, rng);
    case kOffsetWindow:
      return offset_window_text(rng);
    case kLengths:
    case kWindowLengths: {
      const std::int64_t length = rng.between(1, keys);
      const std::string lengths = (p.batch == 1 ? "lengths" : "lengths_" + std::to_string(keys)) +
                                  "_" + std::to_string(length);
      return level == kLengths ? lengths : lengths + "+" + window_text(rows, length, rng);
    }
    case kPacked:
      return packed_text(p);
    case kPackedWindow:
      return packed_text(p) + "+" + window_text(rows, keys, rng);
    case kPackedBoolean:
      return packed_text(p) + "+" + pairs_text(features, rng);
    case kBoolean:
      return pairs_text(features, rng);
    case kWindowBoolean: {
      const std::string window = window_text(rows, keys, rng);
      return window + "+" + pairs_text(features, rng);
    }
    default:
      return "none";
  }
}

// The mask that a text spells. Tens of thousands of level sets ask for the same few: each is parsed
// once.
const Pattern& parsed_mask(const std::string& text, std::int64_t rows, std::int64_t keys) {
  thread_local std::map<std::tuple<std::string, std::int64_t, std::int64_t>, Pattern> known;
  constexpr std::size_t kMost = 4096;
  const std::tuple key(text, rows, keys);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  if (known.size() >= kMost) known.clear();
  return known.emplace(key, Pattern::parse(text, rows, keys)).first->second;
}

// Tells whether every problem of the levels has a feature that the kernel does not claim.
bool lacks_features(const attest_description& d, const Levels& levels) {
  if ((score_levels()[levels[kScores]].features & ~d.features) != 0) return true;
  return levels[kHeads] != 0 && (d.features & ATTEST_GQA) == 0;
}

// A problem of these levels that the kernel claims; nothing when there is none.
std::optional<Problem> problem_of(const attest_description& d, const Levels& levels, Rng& rng) {
  const auto direction = static_cast<Direction>(levels[kDirection]);
  const bool packed = is_packed(levels[kMask]), loss = direction == Direction::loss_gradient;
  if (levels[kLayout] != kStrided && (levels[kLayout] == kThd) != packed) return std::nullopt;
  if (lacks_features(d, levels)) return std::nullopt;
  constexpr std::array<std::int64_t, 3> kWidths{8, 16, 24};
  const auto dims =
      head_dims(d, levels[kValueDim], kWidths[static_cast<std::size_t>(rng.between(0, 2))]);
  if (!dims) return std::nullopt;
  if (loss && (levels[kScores] != 0 || levels[kMask] != kNone || levels[kBatch] != 0)) {
    return std::nullopt;
  }
  const ScoreLevel& scores = score_levels()[levels[kScores]];
  Problem p;
  scores.give(p, rng);
  p.dtype = kDtypes[levels[kDtype]];
  std::tie(p.head_dim_qk, p.head_dim_v) = *dims;
  const std::int64_t tiles = rng.between(1, 2), odd = rng.between(1, 15);
  constexpr std::int64_t kTile = 16;
  const std::int64_t longer = kTile * tiles + odd;
  switch (levels[kSizes]) {
    case kEven:
      p.seqlen_q = p.seqlen_k = kTile * tiles;
      break;
    case kRagged:
      p.seqlen_q = p.seqlen_k = longer;
      break;
    case kFewerQueries:
      p.seqlen_q = std::max<std::int64_t>(odd, 2);
      p.seqlen_k = longer;
      break;
    case kOneQuery:
      p.seqlen_q = 1;
      p.seqlen_k = longer;
      break;
    case kOneKey:
      p.seqlen_q = longer;
      p.seqlen_k = 1;
      break;
    default:
      p.seqlen_q = longer;
      p.seqlen_k = std::max<std::int64_t>(odd, 2);
      break;
  }
  if (!loss) {
    p.batch = levels[kBatch] == 0 ? 1 : 2;
    p.num_heads_kv = rng.between(1, 2);
  }
  p.num_heads_q = p.num_heads_kv * (levels[kHeads] == 0 ? 1 : rng.between(2, 3));
  p.layout = packed ? Layout::thd : levels[kLayout] == kBhsd ? Layout::bhsd : Layout::bshd;
  if (levels[kLayout] == kStrided) {
    constexpr std::array<Strides, 4> kChoices{Strides::padded, Strides::huge, Strides::transposed,
                                              Strides::interleaved};
    const std::int64_t last = (d.features & ATTEST_ANY_STRIDES) != 0 ? 3 : 1;
    p.strides = kChoices[static_cast<std::size_t>(rng.between(0, last))];
  }
  proptest::fit_sizes(d, p);
  if (loss) p.softmax_scale.reset();
  const std::string mask = mask_text(d.features, levels[kMask], p, rng);
  p.mask = parsed_mask(mask, p.seqlen_q, p.seqlen_k);
  proptest::fit_window(d, p);
  proptest::keep_a_key_in_each_row(d, p);
  const bool moved =
      !scores.lies_in(p) || (d.limits != nullptr && levels_of(p, direction) != levels);
  if (moved || !proptest::unclaimed(d, p, direction).empty()) return std::nullopt;
  return p;
}

// Tells whether a few draws find a claimed problem of the levels.
bool claims_levels(const attest_description& description, const Levels& levels) {
  constexpr std::uint64_t kStream = 0x70616972u;
  constexpr int kDraws = 3;
  Rng rng(0, kStream);
  for (int draw = 0; draw < kDraws; ++draw) {
    if (problem_of(description, levels, rng)) return true;
  }
  return false;
}

// The levels for which a few draws find a claimed problem. A kernel's other claims are the same for
// all its dtypes, and for forward and backward but with pages: these are asked about once.
std::vector<Levels> found_levels(const attest_description& description) {
  std::vector<std::size_t> dtypes, attention, loss;
  for (std::size_t dtype = 0; dtype < kDtypes.size(); ++dtype) {
    if ((description.dtypes & (1u << abi(kDtypes[dtype]))) != 0) dtypes.push_back(dtype);
  }
  for (const auto direction : {Direction::forward, Direction::backward, Direction::loss_gradient}) {
    const auto level = static_cast<std::size_t>(direction);
    if ((description.directions & (1u << level)) == 0) continue;
    (direction == Direction::loss_gradient ? loss : attention).push_back(level);
  }
  std::vector<Levels> found;
  const auto add = [&](Levels levels, const std::vector<std::size_t>& directions) {
    if (dtypes.empty() || directions.empty()) return;
    levels[kDtype] = dtypes.front();
    levels[kDirection] = directions.front();
    if (!claims_levels(description, levels)) return;
    const bool forward_alone = score_levels()[levels[kScores]].kind != nullptr;
    for (const std::size_t direction : directions) {
      if (forward_alone && direction != 0) continue;
      for (const std::size_t dtype : dtypes) {
        levels[kDtype] = dtype;
        levels[kDirection] = direction;
        found.push_back(levels);
      }
    }
  };
  Levels levels{};
  while (true) {
    add(levels, attention);
    add(levels, loss);
    std::size_t factor = 0;
    while (factor < kFactors) {
      const bool turns = factor != kDtype && factor != kDirection;
      if (turns && ++levels[factor] < factors()[factor].levels.size()) break;
      levels[factor++] = 0;
    }
    if (factor == kFactors) return found;
  }
}

// Holds all that the levels of a kernel follow from.
std::string claims_key(const attest_description& d) {
  std::string key;
  const auto add = [&](const auto& field) {
    key.append(reinterpret_cast<const char*>(&field), sizeof field);
  };
  add(d.device), add(d.directions), add(d.dtypes), add(d.features);
  add(d.max_head_dim), add(d.head_dim_multiple);
  if (d.limits == nullptr) return key;
  const attest_limits& limits = *d.limits;  // field by field: nobody sets what lies between
  add(limits.only), add(limits.softmax_scale), add(limits.seqlen_q), add(limits.seqlen_k);
  add(limits.head_dim), add(limits.head_dims), add(limits.most_heads_q), add(limits.most_batch);
  return key;
}

// The same, kept: a campaign asks twice, and the score of a corpus plans for hundreds of kernels
// that claim the same.
std::shared_ptr<const std::vector<Levels>> claimed_levels(const attest_description& description) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const std::vector<Levels>>> known;
  constexpr std::size_t kMost = 16;
  const std::string key = claims_key(description);
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  auto found = std::make_shared<const std::vector<Levels>>(found_levels(description));
  const std::lock_guard<std::mutex> lock(mutex);
  if (known.size() >= kMost) known.clear();
  return known[key] = std::move(found);
}

Case drawn(const attest_description& description, const Levels& levels, std::uint64_t seed) {
  constexpr std::uint64_t kStream = 0x6d656574u;
  constexpr int kDraws = 100;
  constexpr std::array<proptest::Values, 4> kValues{proptest::Values::normal, proptest::Values::x4,
                                                    proptest::Values::halves,
                                                    proptest::Values::normal};
  Rng rng(seed, kStream);
  for (int draw = 0; draw < kDraws; ++draw) {
    const std::optional<Problem> problem = problem_of(description, levels, rng);
    if (!problem) continue;
    return {*problem, kValues[static_cast<std::size_t>(rng.between(0, 3))], seed,
            static_cast<std::int32_t>(rng.between(1, 3))};
  }
  throw InternalError("pairwise coverage: no problem of levels that are claimed");
}

}  // namespace

Pairs pairs_of(const Problem& problem, Direction direction) {
  Pairs pairs;
  for_each_pair(levels_of(problem, direction),
                [&](auto... pair) { pairs.insert(spelled(pair...)); });
  return pairs;
}

Pairs claimed_pairs(const attest_description& description) {
  PairTable table;
  Pairs pairs;
  for (const Levels& levels : *claimed_levels(description)) {
    for_each_pair(levels, [&](auto... pair) {
      if (std::exchange(table.at(pair...), 1)) return;
      pairs.insert(spelled(pair...));
    });
  }
  return pairs;
}

std::vector<Case> cases_meeting(const attest_description& description, Pairs missing,
                                std::uint64_t seed) {
  std::vector<Case> cases;
  if (missing.empty()) return cases;
  const auto kept = claimed_levels(description);
  const std::vector<Levels>& claimed = *kept;
  PairTable wanted, seen;
  for (const Levels& levels : claimed) {
    for_each_pair(levels, [&](auto... pair) {
      if (std::exchange(seen.at(pair...), 1)) return;
      wanted.at(pair...) = missing.count(spelled(pair...)) > 0 ? 1 : 0;
    });
  }
  constexpr int kPairs = kFactors * (kFactors - 1) / 2;
  std::vector<int> at_most(claimed.size(), kPairs);  // pairs are met once: none meets more later
  while (true) {
    int most = 0;
    const Levels* best = nullptr;
    for (std::size_t k = 0; k < claimed.size(); ++k) {
      if (at_most[k] <= most) continue;
      int met = 0;
      for_each_pair(claimed[k], [&](auto... pair) { met += wanted.at(pair...); });
      at_most[k] = met;
      if (met <= most) continue;
      most = met;
      best = &claimed[k];
    }
    if (best == nullptr) return cases;
    cases.push_back(drawn(description, *best, mix(seed, cases.size())));
    for_each_pair(*best, [&](auto... pair) { wanted.at(pair...) = 0; });
  }
}

std::vector<Direction> claimed_directions(const attest_description& description,
                                          const Problem& problem) {
  std::vector<Direction> directions;
  for (const auto direction : {Direction::forward, Direction::backward, Direction::loss_gradient}) {
    if (proptest::unclaimed(description, problem, direction).empty()) {
      directions.push_back(direction);
    }
  }
  return directions;
}

}  // namespace attest::certify
