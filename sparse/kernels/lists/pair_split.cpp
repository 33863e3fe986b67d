#include "sparse/kernels/lists/pair_split.hpp"

#include <algorithm>
#include <bit>
#include <exception>
#include <utility>

#include "core/mask/sparsity/blocks_of.hpp"
#include "cpu/kernels/tiles/geometry.hpp"
#include "sparse/kernels/lists/pair_lists.hpp"

namespace attest::sparse {
namespace {

// The keys of a query, as far as they are the same for all batch entries.
class CsrRows {
 public:
  explicit CsrRows(const attest_problem& problem)
      : problem_(problem), lists_(problem.mask.csr->by_query) {
    const attest_mask& mask = problem.mask;
    is_cut_ = problem.batch > 0 && has_band(mask) && mask.key_lengths == nullptr &&
              mask.cu_seqlens_k == nullptr;
    if (is_cut_) batch_ = cpu::batch_of(problem, 0);
  }

  std::int64_t queries() const { return problem_.seqlen_q; }
  std::int64_t keys() const { return problem_.seqlen_k; }
  // Returns the end of all lists.
  const std::int32_t* end() const { return lists_.indices + lists_.offsets[problem_.seqlen_q]; }

  // visit(first, end).
  template <class Visit>
  void with_keys(std::int64_t i, const Visit& visit) const {
    if (is_cut_) {
      const RowList list = keys_of(problem_, batch_, i);
      visit(list.indices, list.indices + list.count);
    } else {
      visit(lists_.indices + lists_.offsets[i], lists_.indices + lists_.offsets[i + 1]);
    }
  }

 private:
  const attest_problem& problem_;
  const attest_lists& lists_;
  bool is_cut_ = false;
  cpu::Batch batch_{};
};

// The rows of one query tile against all keys.
class QueryTile {
 public:
  // Requires: size is a power of two.
  QueryTile(const CsrRows& rows, std::int64_t size)
      : rows_(rows),
        size_(size),
        shift_(std::countr_zero(static_cast<std::uint64_t>(size))),
        parts_(static_cast<std::size_t>(blocks_of(rows.keys(), size))) {}

  // Queries first .. first + rows - 1. Finds which tiles are dense.
  void read(std::int64_t first, std::int64_t rows) {
    for (const std::int64_t tile : met_) part(tile) = {};
    met_.clear();
    dense_ = dense_pairs_ = pairs_ = 0;
    number_ = rows;
    for (std::int64_t r = 0; r < rows; ++r) {
      rows_.with_keys(first + r, [&](const std::int32_t* from, const std::int32_t* end) {
        add_row(r, from, end);
      });
    }
    std::sort(met_.begin(), met_.end());
    for (const std::int64_t tile : met_) {
      Part& one = part(tile);
      pairs_ += one.pairs;
      one.is_dense = one.pairs * kPairsPerVisible >= rows * keys_of(tile);
      if (!one.is_dense) continue;
      ++dense_;
      dense_pairs_ += one.pairs;
    }
  }

  std::int64_t pairs() const { return pairs_; }
  std::int64_t singles() const { return pairs_ - dense_pairs_; }
  std::int64_t dense_tiles() const { return dense_; }

  // The dense tiles end the list of this query tile.
  void append_dense(PairSplit& split) const {
    for (const std::int64_t tile : met_) {
      const Part& one = parts_[static_cast<std::size_t>(tile)];
      if (!one.is_dense) continue;
      split.tiles.indices.push_back(static_cast<std::int32_t>(tile));
      const bool is_whole = one.pairs == number_ * keys_of(tile);
      split.words_at.push_back(is_whole ? PairSplit::kWhole : std::ssize(split.words));
      if (!is_whole) split.words.insert(split.words.end(), one.words, one.words + size_);
    }
    split.tiles.end_list();
  }

  // The keys of a row in tiles that are not dense end its list.
  void append_singles(const std::int32_t* from, const std::int32_t* end,
                      OwnedLists& singles) const {
    const auto append = [&singles](const std::int32_t* first, const std::int32_t* last) {
      singles.indices.insert(singles.indices.end(), first, last);
    };
    if (dense_ == 0) {
      append(from, end);
    } else if (dense_ < std::ssize(met_)) {
      for_segments(from, end, [&](std::int64_t tile, const std::int32_t* at, std::int64_t count) {
        if (!parts_[static_cast<std::size_t>(tile)].is_dense) append(at, at + count);
      });
    }
    singles.end_list();
  }

 private:
  struct Part {
    std::uint64_t words[kTile] = {};
    std::int64_t pairs = 0;
    bool is_dense = false;
  };

  // Keys of row r, ascending.
  void add_row(std::int64_t r, const std::int32_t* from, const std::int32_t* end) {
    for_segments(from, end, [&](std::int64_t tile, const std::int32_t* at, std::int64_t count) {
      Part& one = part(tile);
      if (one.pairs == 0) met_.push_back(tile);
      std::uint64_t word = first_bits(count);
      if (count < keys_of(tile)) {
        word = 0;
        for (std::int64_t n = 0; n < count; ++n) {
          word |= std::uint64_t{1} << (at[n] - tile * size_);
        }
      }
      one.words[r] = word;
      one.pairs += count;
    });
  }

  Part& part(std::int64_t tile) { return parts_[static_cast<std::size_t>(tile)]; }
  std::int64_t keys_of(std::int64_t tile) const {
    return std::min(size_, rows_.keys() - tile * size_);
  }

  // visit(tile, first, count) for the keys in each tile; all keys of a tile are found at once.
  template <class Visit>
  void for_segments(const std::int32_t* from, const std::int32_t* end, const Visit& visit) const {
    while (from < end) {
      // Lists of dense rows are read at the ends of tiles alone, too far apart for the machine to
      // see what comes next.
      __builtin_prefetch(from + std::min(kAhead * size_, rows_.end() - from));
      const std::int64_t tile = *from >> shift_, count = keys_of(tile);
      const std::int64_t last = tile * size_ + count - 1;
      const std::int32_t* to = from + count;
      if (end - from < count || from[count - 1] != last) {
        to = std::find_if(from, end, [last](std::int32_t key) { return key > last; });
      }
      visit(tile, from, to - from);
      from = to;
    }
  }

  static constexpr std::int64_t kAhead = 16;  // tiles

  const CsrRows& rows_;
  std::int64_t size_;
  int shift_;                // size_ is 2^shift_
  std::int64_t number_ = 0;  // of queries
  std::int64_t dense_ = 0, dense_pairs_ = 0, pairs_ = 0;
  std::vector<Part> parts_;
  std::vector<std::int64_t> met_;
};

// About how long a pair of full tiles takes against one of tiles of 64 rows: as measured with
// blocks of 32 and of 16.
double tile_cost(std::int64_t size) { return size == kTile ? 1 : size == kTile / 2 ? 1.15 : 1.25; }

// About how long the visible pairs of some query tiles take, each.
double sampled_cost(const CsrRows& rows, std::int64_t size) {
  constexpr std::int64_t kSamples = 8;
  const std::int64_t step = size * blocks_of(blocks_of(rows.queries(), size), kSamples);
  QueryTile tile(rows, size);
  double cost = 0, pairs = 0;
  for (std::int64_t first = 0; first < rows.queries(); first += step) {
    tile.read(first, std::min(size, rows.queries() - first));
    cost += tile_cost(size) * static_cast<double>(tile.dense_tiles() * size * size) +
            static_cast<double>(kPairsPerVisible * tile.singles());
    pairs += static_cast<double>(tile.pairs());
  }
  return pairs > 0 ? cost / pairs : 0;
}

// Splits the rows of queries first .. end - 1; `size` divides first.
PairSplit split_rows(const CsrRows& rows, std::int64_t first, std::int64_t end, std::int64_t size) {
  PairSplit split;
  split.tile = size;
  QueryTile tile(rows, size);
  for (; first < end; first += size) {
    const std::int64_t count = std::min(size, end - first);
    tile.read(first, count);
    tile.append_dense(split);
    for (std::int64_t i = first; i < first + count; ++i) {
      rows.with_keys(i, [&](const std::int32_t* from, const std::int32_t* to) {
        tile.append_singles(from, to, split.singles);
      });
    }
  }
  return split;
}

}  // namespace

void PairSplit::append(const PairSplit& next) {
  tiles.append(next.tiles);
  for (const std::int64_t at : next.words_at) {
    words_at.push_back(at == kWhole ? kWhole : std::ssize(words) + at);
  }
  words.insert(words.end(), next.words.begin(), next.words.end());
  singles.append(next.singles);
}

PairSplit split_pairs(const attest_problem& problem, std::int64_t tile) {
  const CsrRows all(problem);
  const std::int64_t parts = std::max(problem.num_threads, 1);
  const std::int64_t rows = tile * blocks_of(blocks_of(all.queries(), tile), parts);
  std::vector<PairSplit> split(static_cast<std::size_t>(parts));
  std::exception_ptr failure;
#pragma omp parallel for num_threads(parts)
  for (std::int64_t part = 0; part < parts; ++part) {
    try {
      const std::int64_t first = std::min(part * rows, all.queries());
      split[static_cast<std::size_t>(part)] =
          split_rows(all, first, std::min(first + rows, all.queries()), tile);
    } catch (...) {  // no exception leaves the threads
#pragma omp critical
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
  for (std::size_t part = 1; part < split.size(); ++part) split.front().append(split[part]);
  return std::move(split.front());
}

std::int64_t best_tile(const attest_problem& problem) {
  const CsrRows rows(problem);
  std::int64_t best = kTile;
  double least = sampled_cost(rows, best);
  for (const std::int64_t size : {kTile / 2, kTile / 4}) {
    if (least <= tile_cost(size)) break;  // full tiles of this size take no less
    const double cost = sampled_cost(rows, size);
    if (cost < least) best = size, least = cost;
  }
  return best;
}

}  // namespace attest::sparse
