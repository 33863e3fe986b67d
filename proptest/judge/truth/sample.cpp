#include "proptest/judge/truth/sample.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/rng.hpp"

namespace attest::proptest {
namespace {

using Positions = std::vector<std::int64_t>;

constexpr std::int64_t kMostPairs = std::int64_t{1} << 22;
constexpr std::int64_t kMostQueries = std::int64_t{1} << 15;

bool too_long(const Sequence& sequence) {
  return sequence.q_length > kMostQueries ||
         (sequence.k_length > 0 && sequence.q_length > kMostPairs / sequence.k_length);
}

Positions all_of(std::int64_t length) {
  Positions positions(static_cast<std::size_t>(length));
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

// Where kernels change what they do: ends, powers of two, edges of tiles.
void add_edges(std::int64_t length, Rng& rng, std::set<std::int64_t>& chosen) {
  constexpr std::int64_t kSmallestPower = 16, kTile = 64, kEdges = 8;
  const auto add = [&](std::int64_t position) {
    if (position >= 0 && position < length) chosen.insert(position);
  };
  for (const std::int64_t end : {std::int64_t{0}, std::int64_t{1}, length - 2, length - 1}) {
    add(end);
  }
  for (std::int64_t power = kSmallestPower; power - 1 < length; power *= 2) {
    for (const std::int64_t position : {power - 1, power, power + 1}) add(position);
  }
  for (std::int64_t edge = 0; edge < kEdges; ++edge) {
    const std::int64_t tile = rng.between(0, length / kTile);
    add(tile * kTile - 1);
    add(tile * kTile);
  }
}

// Floyd's method: a set of kRandomPositions of the positions, each such set equally likely.
Positions sample(std::int64_t length, Rng rng) {
  if (length <= kMostPositions) return all_of(length);
  std::set<std::int64_t> drawn;
  for (std::int64_t last = length - kRandomPositions; last < length; ++last) {
    const std::int64_t position = rng.between(0, last);
    drawn.insert(drawn.count(position) == 0 ? position : last);
  }
  add_edges(length, rng, drawn);
  return {drawn.begin(), drawn.end()};
}

}  // namespace

bool judged_by_sample(const Problem& problem) {
  // dBias is judged whole; the pairs of a problem with a bias are not many.
  if (problem.bias.kind != Bias::Kind::none) return false;
  const std::vector<Sequence> sequences = problem.sequences();
  return std::any_of(sequences.begin(), sequences.end(), too_long);
}

std::optional<reference::Sample> sample_of(const Problem& problem, std::uint64_t seed) {
  if (!judged_by_sample(problem)) return std::nullopt;
  constexpr std::uint64_t kQueries = 0x73616d71u, kKeys = 0x73616d6bu;
  reference::Sample of;
  for (const Sequence& sequence : problem.sequences()) {
    const std::uint64_t number = of.queries.size();
    if (!too_long(sequence)) {
      of.queries.push_back(all_of(sequence.q_length));
      of.keys.push_back(all_of(sequence.k_length));
      continue;
    }
    of.queries.push_back(sample(sequence.q_length, Rng(mix(seed, kQueries), number)));
    of.keys.push_back(sample(sequence.k_length, Rng(mix(seed, kKeys), number)));
  }
  return of;
}

}  // namespace attest::proptest
