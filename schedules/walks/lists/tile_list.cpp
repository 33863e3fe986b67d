#include "schedules/walks/lists/tile_list.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "schedules/engine/heads.hpp"

namespace attest::schedules {
namespace {

using io::Range;

constexpr std::int64_t kWordBits = 32;

std::size_t at(std::int64_t value) { return static_cast<std::size_t>(value); }

Range block_of(std::int64_t number, std::int64_t block, std::int64_t extent) {
  return {number * block, std::min((number + 1) * block, extent)};
}

std::int64_t bit_words_of(Range queries, Range keys, std::int64_t visible) {
  const std::int64_t pairs = queries.count() * keys.count();
  return visible == pairs ? 0 : io::tiles(pairs, kWordBits);
}

// Where every row stands in an order.
std::vector<std::int64_t> places_in(const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> places(order.size());
  for (std::size_t place = 0; place < order.size(); ++place) {
    places[at(order[place])] = static_cast<std::int64_t>(place);
  }
  return places;
}

// Counts of the tiles that some queries meet: visible pairs, and of each query the pairs from the
// first to the last.
struct Met {
  std::vector<std::int64_t> visible, spans;

  explicit Met(std::size_t tiles) : visible(tiles), spans(tiles) {}
  void clear() {
    std::fill(visible.begin(), visible.end(), 0);
    std::fill(spans.begin(), spans.end(), 0);
  }
};

// Adds the visible pairs of a query to the tiles it meets; key_places: where each key stands, empty
// for keys as they come. Requires: a boolean mask.
void add_row(const ScoreRule& rule, std::int64_t query, std::int64_t block_k,
             const std::vector<std::int64_t>& key_places, Met& met) {
  const attest_problem& problem = *rule.problem;
  const KeySpan span = visible_keys(problem, rule.batch, query);
  const std::uint8_t* row = problem.mask.boolean + query * problem.seqlen_k;
  for (std::int64_t begin = span.begin, end = 0; begin < span.end; begin = end) {
    // Most rows see few keys: the next one is far.
    const void* next = std::memchr(row + begin, 1, at(span.end - begin));
    if (next == nullptr) return;
    begin = static_cast<const std::uint8_t*>(next) - row;
    if (!key_places.empty()) {
      end = begin + 1;
      ++met.visible[at(key_places[at(begin)] / block_k)];
      continue;
    }
    const std::int64_t tile = begin / block_k;
    end = std::min((tile + 1) * block_k, span.end);
    met.visible[at(tile)] += std::count(row + begin, row + end, std::uint8_t{1});
    const void* last = memrchr(row + begin, 1, at(end - begin));
    met.spans[at(tile)] += static_cast<const std::uint8_t*>(last) - row + 1 - begin;
  }
}

// The same for all queries of a block of a band, which have no gaps: what changes from key to key,
// then sums.
void add_spans(const ScoreRule& rule, Range queries, std::int64_t k, std::int64_t block_k,
               Met& met) {
  std::vector<std::int64_t> changes(at(k) + 1);
  for (std::int64_t i = queries.begin; i < queries.end; ++i) {
    const KeySpan span = visible_keys(*rule.problem, rule.batch, i);
    if (span.begin >= span.end) continue;
    ++changes[at(span.begin)];
    --changes[at(span.end)];
  }
  std::int64_t seeing = 0;
  for (std::int64_t key = 0; key < k; ++key) {
    seeing += changes[at(key)];
    met.visible[at(key / block_k)] += seeing;
  }
  met.spans = met.visible;
}

// The extents of a list's tiles, and what they are cut from.
struct Grid {
  const ScoreRule& rule;
  std::int64_t q, k, block_q, block_k;
  Stay stay;
  const std::vector<std::int64_t>& order;  // of queries, or of keys
};

// tile(row, column, entry) for the tiles with a visible pair, row by row; idle(queries) for the
// rows of tiles without one.
template <class OfTile, class OfIdle>
void for_listed(const Grid& grid, const OfTile& tile, const OfIdle& idle) {
  const bool queries_ordered = grid.stay == Stay::queries && !grid.order.empty();
  const auto key_places =
      places_in(grid.stay == Stay::keys ? grid.order : std::vector<std::int64_t>{});
  Met met(at(io::tiles(grid.k, grid.block_k)));
  for (std::int64_t row = 0; row < io::tiles(grid.q, grid.block_q); ++row) {
    const Range queries = block_of(row, grid.block_q, grid.q);
    met.clear();
    const bool pairs = grid.rule.problem->mask.boolean != nullptr;
    if (!pairs) add_spans(grid.rule, queries, grid.k, grid.block_k, met);
    for (std::int64_t i = queries.begin; pairs && i < queries.end; ++i) {
      add_row(grid.rule, queries_ordered ? grid.order[at(i)] : i, grid.block_k, key_places, met);
    }
    Visit visit = Visit::first;
    for (std::size_t column = 0; column < met.visible.size(); ++column) {
      if (met.visible[column] == 0) continue;
      const Range keys = block_of(static_cast<std::int64_t>(column), grid.block_k, grid.k);
      tile(row, static_cast<std::int64_t>(column),
           TileList::Entry{{queries, keys, visit},
                           0,
                           bit_words_of(queries, keys, met.visible[column]),
                           met.spans[column]});
      visit = Visit::later;
    }
    if (visit == Visit::first) idle(queries);
  }
}

// Adds tiles up, row by row.
class Adder {
 public:
  explicit Adder(std::int64_t key_blocks) : used_(at(key_blocks)) {}

  void add(std::int64_t column, const TileList::Entry& entry) {
    const std::int64_t queries = entry.queries.count(), keys = entry.keys.count();
    sums_.index_words += 1;
    sums_.bit_words += entry.bit_words;
    sums_.tile_queries += queries;
    sums_.tile_keys += keys;
    sums_.pairs += io::Words(queries) * keys;
    if (std::exchange(used_[at(column)], std::uint8_t{1}) == 0) sums_.keys += keys;
    if (entry.visit == Visit::first) sums_.queries += queries;
    const WalkSums::Shape shape{queries, keys, 1 + entry.bit_words};
    if (last_ == shapes_.end() || last_->first != shape)
      last_ = shapes_.try_emplace(shape, 0).first;
    last_->second += 1;
  }

  void add_idle(Range queries) {
    sums_.idle_words += 1;
    sums_.idle_queries = std::max(sums_.idle_queries, queries.count());
  }

  WalkSums take(std::int64_t lists) {
    sums_.lists = lists;
    sums_.idle_words += 1;
    sums_.index_words += 2 * io::Words(lists);
    for (const auto& [shape, tiles] : shapes_) sums_.shapes.push_back({shape, tiles});
    return std::move(sums_);
  }

 private:
  WalkSums sums_;
  std::vector<std::uint8_t> used_;
  std::map<WalkSums::Shape, io::Words> shapes_;
  std::map<WalkSums::Shape, io::Words>::iterator last_ = shapes_.end();
};

}  // namespace

bool has_pattern(const attest_problem& problem) {
  const attest_mask& mask = problem.mask;
  return mask.boolean != nullptr || mask.window_left >= 0 || mask.window_right >= 0;
}

TileList::TileList(const ScoreRule& rule, std::int64_t q, std::int64_t k, std::int64_t block_q,
                   std::int64_t block_k, Stay stay, const std::vector<std::int64_t>& order)
    : stay_(stay), block_(stay == Stay::queries ? block_q : block_k) {
  blocks_ = io::single_blocks(stay == Stay::queries ? q : k, block_);
  lists_.resize(blocks_.size());
  Adder adder(io::tiles(k, block_k));
  std::int64_t first_column = 0;
  for_listed(
      {rule, q, k, block_q, block_k, stay, order},
      [&](std::int64_t row, std::int64_t column, Entry entry) {
        adder.add(column, entry);
        entry.first_column = std::exchange(first_column, first_column + entry.keys.count());
        lists_[at(stay == Stay::queries ? row : column)].push_back(entry);
      },
      [&](Range queries) {
        adder.add_idle(queries);
        idle_.push_back(queries);
      });
  lay_out();
  sums_ = adder.take(static_cast<std::int64_t>(lists_.size()));
}

void TileList::lay_out() {
  std::int64_t next = static_cast<std::int64_t>(lists_.size()) + 1, number = 0;
  for (std::vector<Entry>& list : lists_) {
    for (Entry& entry : list) {
      entry.first_word = next;
      next += 1 + entry.bit_words;
      entry.number = number++;
    }
  }
  words_.resize(at(next));
  places_.resize(at(number));
  idle_words_.resize(idle_.size() + 1);
}

WalkSums TileList::sums_of(const ScoreRule& rule, std::int64_t q, std::int64_t k,
                           std::int64_t block_q, std::int64_t block_k, Stay stay,
                           const std::vector<std::int64_t>& order) {
  if (has_pattern(*rule.problem) || q == 0 || k == 0) {
    Adder adder(io::tiles(k, block_k));
    for_listed(
        {rule, q, k, block_q, block_k, stay, order},
        [&](std::int64_t, std::int64_t column, const Entry& entry) { adder.add(column, entry); },
        [&](Range queries) { adder.add_idle(queries); });
    return adder.take(stay == Stay::queries ? io::tiles(q, block_q) : io::tiles(k, block_k));
  }
  const std::int64_t i = std::min(block_q, q), j = std::min(block_k, k);
  const std::int64_t bits = i * j > 1 ? io::tiles(i * j, kWordBits) : 0;
  const io::Words rows = io::tiles(q, block_q), columns = io::tiles(k, block_k);
  WalkSums sums;
  sums.lists = (stay == Stay::queries ? rows : columns).value();
  sums.index_words = 2 * io::Words(sums.lists) + rows * columns;
  sums.bit_words = rows * columns * bits;
  sums.tile_queries = columns * q;
  sums.tile_keys = rows * k;
  sums.pairs = io::Words(q) * k;
  sums.queries = q;
  sums.keys = k;
  sums.idle_queries = i;
  sums.idle_words = 1;
  if (i > 0 && j > 0) sums.shapes.push_back({{i, j, 1 + bits}, rows * columns});
  return sums;
}

void TileList::for_lists(
    const ScoreRule& rule, std::int64_t q, std::int64_t k, std::int64_t block_q,
    std::int64_t block_k, Stay stay,
    const std::function<void(std::int64_t extent, std::span<const Sized> tiles)>& body) {
  const auto sized = [](const Entry& entry) -> Sized {
    return {entry.queries.count(), entry.keys.count(), entry.spans, 1 + entry.bit_words,
            entry.visit};
  };
  const std::vector<std::int64_t> as_they_come;
  const Grid grid{rule, q, k, block_q, block_k, stay, as_they_come};
  if (stay == Stay::keys) {
    std::vector<std::vector<Sized>> lists(at(io::tiles(k, block_k)));
    for_listed(
        grid,
        [&](std::int64_t, std::int64_t column, const Entry& entry) {
          lists[at(column)].push_back(sized(entry));
        },
        [](Range) {});
    for (std::size_t column = 0; column < lists.size(); ++column) {
      body(block_of(static_cast<std::int64_t>(column), block_k, k).count(), lists[column]);
    }
    return;
  }
  std::vector<Sized> tiles;  // of the last block
  const auto finish = [&] {
    if (!tiles.empty()) body(tiles.front().queries, tiles);
    tiles.clear();
  };
  for_listed(
      grid,
      [&](std::int64_t, std::int64_t, const Entry& entry) {
        if (entry.visit == Visit::first) finish();
        tiles.push_back(sized(entry));
      },
      [&](Range queries) {
        finish();
        body(queries.count(), {});
      });
  finish();
}

std::int64_t TileList::longest(const attest_problem& problem, std::int64_t block_q,
                               std::int64_t block_k, Stay stay) {
  std::size_t most = 0;
  for (std::int64_t entry = 0; entry < (uniform_batches(problem) ? 1 : problem.batch); ++entry) {
    const Batch batch = batch_of(problem, entry);
    for_lists(
        {&problem, batch, 0}, batch.q_length, batch.k_length, block_q, block_k, stay,
        [&](std::int64_t, std::span<const Sized> tiles) { most = std::max(most, tiles.size()); });
  }
  return static_cast<std::int64_t>(most);
}

io::SlowMatrix TileList::matrix() const {
  return {name(), static_cast<std::int64_t>(words_.size()), 1, DType::f32, {words_.data(), 1, 1}};
}

io::SlowMatrix TileList::places() const {
  return {"tile_places",
          static_cast<std::int64_t>(places_.size()),
          1,
          DType::f32,
          {places_.data(), 1, 1}};
}

io::SlowMatrix TileList::idle_matrix() const {
  return {"idle_list",
          static_cast<std::int64_t>(idle_words_.size()),
          1,
          DType::f32,
          {idle_words_.data(), 1, 1}};
}

}  // namespace attest::schedules
