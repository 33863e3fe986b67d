#include "cpu/schedules/band.hpp"

#include <algorithm>

namespace attest::cpu {
namespace {

io::Range common(io::Range a, io::Range b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

io::Range band_of(const ScoreRule& rule, std::int64_t i) {
  const KeySpan span = visible_keys(*rule.problem, rule.batch, i);
  return {span.begin, span.end};
}

// The first of a range at which what stays true from there on is true; its end if nowhere.
template <class Predicate>
std::int64_t first_of(io::Range range, const Predicate& predicate) {
  while (range.count() > 0) {
    const std::int64_t middle = range.begin + range.count() / 2;
    if (predicate(middle)) {
      range.end = middle;
    } else {
      range.begin = middle + 1;
    }
  }
  return range.begin;
}

// `range` with each of its ends outside `alike` in steps of one.
std::vector<io::Range> steps(io::Range range, io::Range alike) {
  std::vector<io::Range> list;
  const auto singles = [&list](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) list.push_back({n, n + 1});
  };
  alike = common(alike, range);
  if (alike.count() == 0) alike = {range.end, range.end};
  singles(range.begin, alike.begin);
  if (alike.count() > 0) list.push_back(alike);
  singles(alike.end, range.end);
  return list;
}

// The place of a range that is nearest to one.
std::int64_t nearest(io::Range range, std::int64_t place) {
  return std::clamp(place, range.begin, range.end - 1);
}

}  // namespace

bool has_band(const ScoreRule& rule) {
  const attest_mask& mask = rule.problem->mask;
  return mask.window_left >= 0 || mask.window_right >= 0 || rule.batch.keys != rule.batch.k_length;
}

io::Range keys_of(const ScoreRule& rule, io::Range queries) {
  if (queries.count() == 0) return {};
  const KeySpan span = visible_keys(*rule.problem, rule.batch, queries.begin, queries.count());
  return {span.begin, std::max(span.begin, span.end)};
}

io::Range queries_of(const ScoreRule& rule, io::Range queries, io::Range keys) {
  if (keys.count() == 0) return {queries.begin, queries.begin};
  if (!has_band(rule)) return queries;
  const std::int64_t begin =
      first_of(queries, [&](std::int64_t i) { return band_of(rule, i).end > keys.begin; });
  // Beyond the last key bands are empty.
  const std::int64_t last = std::min(keys.end, rule.batch.keys);
  const std::int64_t end =
      first_of(queries, [&](std::int64_t i) { return band_of(rule, i).begin >= last; });
  return {begin, std::max(begin, end)};
}

io::Range keys_within(const ScoreRule& rule, std::int64_t i, io::Range keys) {
  return common(band_of(rule, i), keys);
}

std::vector<io::Range> key_steps(const ScoreRule& rule, io::Range queries) {
  const io::Range keys = keys_of(rule, queries);
  if (keys.count() == 0) return {};
  return steps(keys, common(band_of(rule, queries.begin), band_of(rule, queries.end - 1)));
}

std::vector<io::Range> query_steps(const ScoreRule& rule, io::Range queries, io::Range keys) {
  const io::Range seeing = queries_of(rule, queries, keys);
  if (seeing.count() == 0) return {};
  return steps(seeing, common(queries_of(rule, queries, {keys.begin, keys.begin + 1}),
                              queries_of(rule, queries, {keys.end - 1, keys.end})));
}

// Along the keys the count grows, stays and falls. The first key of the last query's band is where
// it stays, if that key exists; else the nearest one is.
std::int64_t most_queries(const ScoreRule& rule, io::Range queries) {
  const io::Range keys = keys_of(rule, queries);
  if (keys.count() == 0) return 0;
  const std::int64_t key = nearest(keys, band_of(rule, queries.end - 1).begin);
  return queries_of(rule, queries, {key, key + 1}).count();
}

// Likewise along the queries, and the first query that sees the last of the keys.
std::int64_t most_keys(const ScoreRule& rule, io::Range queries, io::Range keys) {
  const io::Range seeing = queries_of(rule, queries, keys);
  if (seeing.count() == 0) return 0;
  const std::int64_t last = std::min(keys.end, rule.batch.keys) - 1;
  const std::int64_t query = nearest(seeing, queries_of(rule, queries, {last, last + 1}).begin);
  return keys_within(rule, query, keys).count();
}

io::Words band_pairs(const ScoreRule& rule, io::Range queries) {
  if (!has_band(rule)) return io::Words(queries.count()) * rule.batch.keys;
  io::Words pairs = 0;
  for (std::int64_t i = queries.begin; i < queries.end; ++i) pairs += band_of(rule, i).count();
  return pairs;
}

std::vector<io::Range> alike_blocks(const ScoreRule& rule, std::int64_t extent,
                                    std::int64_t block) {
  if (has_band(rule)) return io::single_blocks(extent, block);
  return {{0, extent}};
}

}  // namespace attest::cpu
