#include "schedules/walks/band.hpp"

#include <algorithm>

#include "schedules/walks/mask_hull.hpp"

namespace attest::schedules {
namespace {

io::Range band_of(const ScoreRule& rule, std::int64_t i) {
  if (rule.hull != nullptr) return rule.hull->band(i);
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
  alike = overlap(alike, range);
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

// Sum over the queries of an end of their bands, cut to the keys. sum(queries): of ends between
// these, uncut.
template <class End, class Sum>
io::Words sum_within(io::Range queries, io::Range keys, const End& end, const Sum& sum_of) {
  const std::int64_t within =
      first_of(queries, [&](std::int64_t i) { return end(i) > keys.begin; });
  const std::int64_t beyond =
      first_of({within, queries.end}, [&](std::int64_t i) { return end(i) >= keys.end; });
  const io::Words sum =
      io::Words(within - queries.begin) * keys.begin + io::Words(queries.end - beyond) * keys.end;
  return beyond > within ? sum + sum_of({within, beyond}) : sum;
}

// Each piece as long as it has no more than so many pairs, but of one at least. In `full` every
// pair is visible.
template <class PairsOf>
std::vector<Pieces> cut(io::Range extent, io::Range full, std::int64_t pairs,
                        const PairsOf& pairs_of) {
  std::vector<Pieces> pieces;
  for (std::int64_t begin = extent.begin; begin < extent.end;) {
    const std::int64_t end = first_of({begin + 1, extent.end}, [&](std::int64_t stop) {
      return pairs_of({begin, stop + 1}) > pairs;
    });
    const std::int64_t length = end - begin;
    const bool within = begin > full.begin && end < full.end;
    const std::int64_t count = within ? (full.end - 1 - begin) / length : 1;
    pieces.push_back({{begin, begin + count * length}, length});
    begin += count * length;
  }
  return pieces;
}

}  // namespace

io::Range overlap(io::Range a, io::Range within) {
  const std::int64_t begin = std::clamp(a.begin, within.begin, within.end);
  return {begin, std::clamp(a.end, begin, within.end)};
}

bool has_band(const ScoreRule& rule) {
  const attest_mask& mask = rule.problem->mask;
  return rule.hull != nullptr || mask.window_left >= 0 || mask.window_right >= 0 ||
         rule.batch.keys != rule.batch.k_length;
}

io::Range keys_of(const ScoreRule& rule, io::Range queries) {
  if (queries.count() == 0) return {};
  // Both ends of a band grow with the query.
  const std::int64_t begin = band_of(rule, queries.begin).begin;
  return {begin, std::max(begin, band_of(rule, queries.end - 1).end)};
}

io::Range queries_of(const ScoreRule& rule, io::Range queries, io::Range keys) {
  if (keys.count() == 0) return {queries.begin, queries.begin};
  if (!has_band(rule)) return queries;
  if (rule.hull != nullptr) queries = overlap(rule.hull->seeing(), queries);
  const std::int64_t begin =
      first_of(queries, [&](std::int64_t i) { return band_of(rule, i).end > keys.begin; });
  // Beyond the last key bands are empty.
  const std::int64_t last = std::min(keys.end, rule.batch.keys);
  const std::int64_t end =
      first_of(queries, [&](std::int64_t i) { return band_of(rule, i).begin >= last; });
  return {begin, std::max(begin, end)};
}

io::Range keys_within(const ScoreRule& rule, std::int64_t i, io::Range keys) {
  return overlap(band_of(rule, i), keys);
}

std::vector<io::Range> key_steps(const ScoreRule& rule, io::Range queries) {
  const io::Range keys = keys_of(rule, queries);
  if (keys.count() == 0) return {};
  return steps(keys, overlap(band_of(rule, queries.begin), band_of(rule, queries.end - 1)));
}

std::vector<io::Range> query_steps(const ScoreRule& rule, io::Range queries, io::Range keys) {
  const io::Range seeing = queries_of(rule, queries, keys);
  if (seeing.count() == 0) return {};
  return steps(seeing, overlap(queries_of(rule, queries, {keys.begin, keys.begin + 1}),
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
  if (rule.hull != nullptr) return std::min(rule.hull->most_keys(), keys.count());
  const std::int64_t last = std::min(keys.end, rule.batch.keys) - 1;
  const std::int64_t query = nearest(seeing, queries_of(rule, queries, {last, last + 1}).begin);
  return keys_within(rule, query, keys).count();
}

io::Words band_pairs(const ScoreRule& rule, io::Range queries) {
  return band_pairs(rule, queries, {0, rule.batch.keys});
}

io::Words band_pairs(const ScoreRule& rule, io::Range queries, io::Range keys) {
  if (!has_band(rule)) return io::Words(queries.count()) * keys.count();
  const auto begin = [&](std::int64_t i) { return band_of(rule, i).begin; };
  const auto end = [&](std::int64_t i) { return band_of(rule, i).end; };
  if (rule.hull != nullptr) {
    return sum_within(queries, keys, end, [&](io::Range of) { return rule.hull->ends(of); }) -
           sum_within(queries, keys, begin, [&](io::Range of) { return rule.hull->begins(of); });
  }
  // Between the ends of the keys a window's grow by one.
  const auto growing = [](const auto& place) {
    return [&place](io::Range of) {
      const io::Words twice =
          io::Words(of.count()) * (io::Words(place(of.begin)) + place(of.end - 1));
      return io::Words(twice.value() / 2);
    };
  };
  return sum_within(queries, keys, end, growing(end)) -
         sum_within(queries, keys, begin, growing(begin));
}

std::int64_t begun_before(const ScoreRule& rule, io::Range queries, std::int64_t key) {
  return first_of(queries, [&](std::int64_t i) { return band_of(rule, i).begin >= key; }) -
         queries.begin;
}

std::int64_t ended_by(const ScoreRule& rule, io::Range queries, std::int64_t key_end) {
  return first_of(queries, [&](std::int64_t i) { return band_of(rule, i).end > key_end; }) -
         queries.begin;
}

bool inner_queries(const ScoreRule& rule, io::Range queries) {
  if (rule.hull != nullptr) return false;
  const io::Range keys = keys_of(rule, queries);
  return keys.begin > 0 && keys.end < rule.batch.keys;
}

bool inner_keys(const ScoreRule& rule, io::Range queries, io::Range keys) {
  if (rule.hull != nullptr) return false;
  const io::Range seeing = queries_of(rule, queries, keys);
  return seeing.begin > queries.begin && seeing.end < queries.end && keys.begin > 0 &&
         keys.end < rule.batch.keys;
}

std::vector<Pieces> key_pieces(const ScoreRule& rule, io::Range queries, std::int64_t pairs) {
  if (queries.count() == 0) return {};
  const io::Range full = overlap(band_of(rule, queries.begin), band_of(rule, queries.end - 1));
  return cut(keys_of(rule, queries), full, pairs,
             [&](io::Range piece) { return band_pairs(rule, queries, piece); });
}

std::vector<Pieces> query_pieces(const ScoreRule& rule, io::Range queries, io::Range keys,
                                 std::int64_t pairs) {
  if (keys.count() == 0) return {};
  io::Range full = overlap(queries_of(rule, queries, {keys.begin, keys.begin + 1}),
                           queries_of(rule, queries, {keys.end - 1, keys.end}));
  // Several bands of a hull may begin with the keys.
  const std::int64_t before = begun_before(rule, full, keys.begin);
  if (before > 0) full.end = full.begin + before;
  return cut(queries_of(rule, queries, keys), full, pairs,
             [&](io::Range piece) { return band_pairs(rule, piece, keys); });
}

std::vector<io::Range> alike_blocks(const ScoreRule& rule, std::int64_t extent,
                                    std::int64_t block) {
  if (has_band(rule)) return io::single_blocks(extent, block);
  return {{0, extent}};
}

}  // namespace attest::schedules
