#include "sparse/schedules/tile_list.hpp"

#include <algorithm>
#include <cstring>
#include <set>

namespace attest::sparse {
namespace {

using cpu::KeySpan;
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

// Adds the visible pairs of a query to the counts of the tiles it meets.
void count_row(const cpu::ScoreRule& rule, std::int64_t query, std::int64_t block_k,
               std::vector<std::int64_t>& counts) {
  const attest_problem& problem = *rule.problem;
  const KeySpan span = visible_keys(problem, rule.batch, query);
  if (problem.mask.boolean == nullptr) {
    for (std::int64_t begin = span.begin, end = 0; begin < span.end; begin = end) {
      end = std::min((begin / block_k + 1) * block_k, span.end);
      counts[at(begin / block_k)] += end - begin;
    }
    return;
  }
  const std::uint8_t* row = problem.mask.boolean + query * problem.seqlen_k;
  for (std::int64_t begin = span.begin, end = 0; begin < span.end; begin = end) {
    // Most rows see few keys: the next one is far.
    const void* next = std::memchr(row + begin, 1, at(span.end - begin));
    if (next == nullptr) return;
    begin = static_cast<const std::uint8_t*>(next) - row;
    end = std::min((begin / block_k + 1) * block_k, span.end);
    counts[at(begin / block_k)] += std::count(row + begin, row + end, std::uint8_t{1});
  }
}

}  // namespace

std::vector<Range> single_blocks(std::int64_t extent, std::int64_t block) {
  std::vector<Range> blocks;
  for (std::int64_t n = 0; n < io::tiles(extent, block); ++n) {
    blocks.push_back(block_of(n, block, extent));
  }
  return blocks;
}

TileList::TileList(const cpu::ScoreRule& rule, std::int64_t q, std::int64_t k, std::int64_t block_q,
                   std::int64_t block_k, ListsOf of, const std::vector<std::int64_t>& order)
    : of_(of), q_(q), k_(k), block_(of == ListsOf::queries ? block_q : block_k) {
  const std::int64_t tiles_q = io::tiles(q, block_q), tiles_k = io::tiles(k, block_k);
  blocks_ = single_blocks(of == ListsOf::queries ? q : k, block_);
  lists_.resize(blocks_.size());
  std::int64_t first_column = 0;
  for (std::int64_t row = 0; row < tiles_q; ++row) {
    const Range queries = block_of(row, block_q, q);
    std::vector<std::int64_t> visible(at(tiles_k));
    for (std::int64_t i = queries.begin; i < queries.end; ++i) {
      count_row(rule, order.empty() ? i : order[at(i)], block_k, visible);
    }
    Visit visit = Visit::first;
    for (std::int64_t column = 0; column < tiles_k; ++column) {
      if (visible[at(column)] == 0) continue;
      const Range keys = block_of(column, block_k, k);
      lists_[at(of == ListsOf::queries ? row : column)].push_back(
          {queries, keys, visit, 0, bit_words_of(queries, keys, visible[at(column)]), first_column,
           0});
      first_column += keys.count();
      visit = Visit::later;
    }
    if (visit == Visit::first) idle_.push_back(queries);
  }
  lay_out();
  sum_up(block_q, block_k);
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

void TileList::sum_up(std::int64_t block_q, std::int64_t block_k) {
  std::set<Shape> shapes;
  Shape last{};
  std::vector<std::uint8_t> used(at(io::tiles(k_, block_k)));
  sums_.lists = static_cast<std::int64_t>(lists_.size());
  sums_.index_words = 2 * sums_.lists;
  for (const std::vector<Entry>& list : lists_) {
    for (const Entry& entry : list) {
      sums_.index_words += 1;
      sums_.bit_words += entry.bit_words;
      sums_.tile_queries += entry.queries.count();
      sums_.tile_keys += entry.keys.count();
      sums_.pairs += io::Words(entry.queries.count()) * entry.keys.count();
      if (entry.visit == Visit::first) sums_.queries += entry.queries.count();
      std::uint8_t& seen = used[at(entry.keys.begin / block_k)];
      if (seen == 0) sums_.keys += entry.keys.count();
      seen = 1;
      const Shape shape{entry.queries.count(), entry.keys.count(), 1 + entry.bit_words};
      if (shape != last) shapes.insert(shape);
      last = shape;
    }
  }
  sums_.shapes.assign(shapes.begin(), shapes.end());
  sums_.idle_blocks = static_cast<std::int64_t>(idle_.size());
  for (const Range& queries : idle_) {
    sums_.idle_queries = std::max(sums_.idle_queries, std::min(queries.count(), block_q));
  }
}

TileList::Sums TileList::sums_of(const cpu::ScoreRule& rule, std::int64_t q, std::int64_t k,
                                 std::int64_t block_q, std::int64_t block_k, ListsOf of,
                                 const std::vector<std::int64_t>& order) {
  if (rule.problem->mask.boolean != nullptr || q == 0 || k == 0) {
    return TileList(rule, q, k, block_q, block_k, of, order).sums();
  }
  const std::int64_t i = std::min(block_q, q), j = std::min(block_k, k);
  const std::int64_t bits = i * j > 1 ? io::tiles(i * j, kWordBits) : 0;
  const io::Words rows = io::tiles(q, block_q), columns = io::tiles(k, block_k);
  Sums sums;
  sums.lists = (of == ListsOf::queries ? rows : columns).value();
  sums.index_words = 2 * io::Words(sums.lists) + rows * columns;
  sums.bit_words = rows * columns * bits;
  sums.tile_queries = columns * q;
  sums.tile_keys = rows * k;
  sums.pairs = io::Words(q) * k;
  sums.queries = q;
  sums.keys = k;
  sums.idle_queries = i;
  if (i > 0 && j > 0) sums.shapes.push_back({i, j, 1 + bits});
  return sums;
}

io::SlowMatrix TileList::matrix() const {
  return {name(), static_cast<std::int64_t>(words_.size()), 1, DType::f32, {words_.data(), 1, 1}};
}

io::SlowMatrix TileList::places() const {
  return {"tile places",
          static_cast<std::int64_t>(places_.size()),
          1,
          DType::f32,
          {places_.data(), 1, 1}};
}

io::SlowMatrix TileList::idle_matrix() const {
  return {"idle list",
          static_cast<std::int64_t>(idle_words_.size()),
          1,
          DType::f32,
          {idle_words_.data(), 1, 1}};
}

}  // namespace attest::sparse
