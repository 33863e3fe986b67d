#include "certify/plan/pairs/pairwise.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "certify/plan/pairs/level_problems.hpp"
#include "certify/plan/pairs/pair_levels.hpp"
#include "certify/plan/pairs/score_levels.hpp"
#include "core/dtype/dtype.hpp"
#include "core/error.hpp"
#include "core/rng.hpp"
#include "proptest/judge/claims.hpp"

namespace attest::certify {
namespace {

using proptest::Case;

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
  for (std::size_t dtype = 0; dtype < proptest::kDTypesOfCampaigns.size(); ++dtype) {
    if ((description.dtypes & (1u << abi(proptest::kDTypesOfCampaigns[dtype]))) != 0)
      dtypes.push_back(dtype);
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
