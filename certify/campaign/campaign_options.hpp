#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "certify/campaign/campaign_mask.hpp"
#include "proptest/values/generator.hpp"

namespace attest::certify {

/// Part `index` of `count` of a campaign, counted from 1.
struct Shard {
  std::uint32_t index = 1, count = 1;
  bool whole() const { return count == 1; }
};

/// "2/3". Throws InvalidProblem unless 1 <= index <= count.  [certify/plan/plan_test "shards are
/// spelled"]
Shard parse_shard(const std::string& text);
std::string to_string(const Shard& shard);

/// Shapes of problems that a campaign adds to the generated ones.
enum class Shapes : std::uint8_t { model, none };

/// "model", those of published models, or "none". Throws InvalidProblem for others.
/// [certify/plan/plan_test "shapes are spelled"]
Shapes parse_shapes(const std::string& text);
std::string to_string(Shapes shapes);

struct CampaignOptions {
  proptest::Tier tier = proptest::Tier::smoke;
  std::uint64_t seed = 1;                  // of the geometry: sizes, masks, layouts, families
  std::optional<std::uint64_t> data_seed;  // of the values; absent: the same
  std::optional<std::uint64_t> cases;      // generated cases; absent: the tier's number
  Shapes shapes = Shapes::model;           // with none nothing is certified
  std::optional<std::string> law;          // only this law
  std::optional<CampaignMask> mask;        // of every case; then generated cases alone
  std::vector<std::string> problems;       // the caller's own, added; canonical spellings
  unsigned jobs = 1;                       // threads; the results do not depend on it
  Shard shard;                             // of the checks

  std::uint64_t values_seed() const { return data_seed.value_or(seed); }
};

}  // namespace attest::certify
