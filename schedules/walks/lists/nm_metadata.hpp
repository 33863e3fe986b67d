#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "io/machine/machine.hpp"
#include "io/machine/words.hpp"
#include "schedules/engine/head.hpp"
#include "schedules/walks/lists/tile_list.hpp"

namespace attest::schedules {

/// `kept` of every `group` consecutive keys, for every query; of a last group that is cut, or where
/// keys end, maybe fewer.
struct NmShape {
  std::int64_t kept = 1, group = 2;
  friend bool operator==(const NmShape&, const NmShape&) = default;
};

/// The N and M of mask.nm. Other parts of the mask (key lengths, a window) take keys away and leave
/// the offsets in slow memory as they are. Throws io::NotForProblem without an N:M pattern, also
/// where the pairs of another happen to be N of every M: nothing has packed its offsets.
/// [schedules/walks/lists/nm_metadata_test "shapes"]
NmShape nm_shape_of(const attest_problem& problem);

/// How the metadata of an N:M pattern lie in slow memory: of each block of queries and each group
/// the offsets of the kept keys, packed in 32-bit words: i queries take ceil(i N ceil(log2 M) /
/// 32). They lie where block and group say, so nothing points to them.
class NmLayout {
 public:
  NmLayout(const ScoreRule& rule, std::int64_t q, std::int64_t k, NmShape shape,
           std::int64_t block_q);

  /// A block, and how many are as it.
  struct Blocks {
    io::Range rows;
    io::Words times;
  };
  /// Each block of queries once; without a boolean mask those that are alike together.
  std::vector<Blocks> query_blocks() const;

  /// The same of blocks of keys, which without a boolean mask are alike when they lie alike in
  /// their groups.  [schedules/lists/nm/nm_two_pass_test "blocks that are alike"]
  std::vector<Blocks> key_blocks(std::int64_t block_k) const;

  /// The groups that hold keys of the range.
  io::Range groups_of(io::Range keys) const {
    return {keys.begin / shape_.group, io::tiles(keys.end, shape_.group)};
  }
  std::int64_t groups() const { return io::tiles(k_, shape_.group); }

  /// Words of one group for so many queries.
  std::int64_t group_words(std::int64_t queries) const;

  /// Keys that a query of the range sees; without a boolean mask, all.
  std::int64_t keys_seen(io::Range queries) const;

  /// Queries of a block that see a key of the range; without a boolean mask, all.
  std::int64_t queries_seeing(io::Range keys, io::Range queries) const;

 protected:
  bool sees(std::int64_t query, io::Range keys) const;
  std::vector<std::uint8_t> seen_by(io::Range queries) const;

  // Returns the first word of the first group of a block of queries.
  std::int64_t first_word(io::Range queries) const {
    return queries.begin / block_q_ * groups() * group_words(block_q_);
  }

  const ScoreRule& rule_;
  std::int64_t q_, k_;
  NmShape shape_;
  std::int64_t block_q_;

 private:
  std::vector<Blocks> blocks_of(std::int64_t extent, std::int64_t block, std::int64_t group) const;
};

/// The metadata themselves, and who is told by them what a query sees.
class NmMetadata : public NmLayout {
 public:
  explicit NmMetadata(const NmLayout& layout);

  /// body(key) for each key that a query of the block sees, ascending, the metadata of its group in
  /// fast memory.
  template <io::Machine M, class Body>
  void for_keys(M& machine, io::Range queries, const Body& body) const {
    const std::vector<std::uint8_t> seen = seen_by(queries);
    const std::int64_t words = group_words(queries.count());
    std::int64_t first = first_word(queries);
    for (std::int64_t begin = 0; begin < k_; begin += shape_.group, first += words) {
      const auto offsets = machine.load(matrix().block({first, first + words}), "metadata");
      for (std::int64_t j = begin; j < std::min(begin + shape_.group, k_); ++j) {
        if (seen[static_cast<std::size_t>(j)] != 0) body(io::Range{j, j + 1});
      }
    }
  }

  /// body(query) for each query that sees a key of the block, ascending, the metadata of the groups
  /// that the block meets in fast memory, those of a block of queries at a time.
  template <io::Machine M, class Body>
  void for_queries(M& machine, io::Range keys, const Body& body) const {
    const io::Range met = groups_of(keys);
    for (const io::Range& queries : io::single_blocks(q_, block_q_)) {
      const std::int64_t words = group_words(queries.count()), first = first_word(queries);
      const auto offsets = machine.load(
          matrix().block({first + met.begin * words, first + met.end * words}), "metadata");
      for (std::int64_t i = queries.begin; i < queries.end; ++i) {
        if (sees(i, keys)) body(io::Range{i, i + 1});
      }
    }
  }

 private:
  io::SlowMatrix matrix() const;

  std::vector<float> words_;  // four bytes each: only how many there are matters
};

/// The walk of these metadata, whose tiles are single rows: keys that pass by blocks of queries, or
/// queries that pass by blocks of keys. No block is known to be empty before they are read.
class NmWalk {
 public:
  NmWalk(const NmMetadata& metadata, std::int64_t extent, std::int64_t block, Stay stay)
      : metadata_(metadata), extent_(extent), block_(block), stay_(stay) {}

  std::vector<io::Range> blocks() const { return io::single_blocks(extent_, block_); }

  template <io::Machine M>
  struct Tiles {
    M& machine;
    const NmMetadata& metadata;
    io::Range block;
    Stay stay;

    bool empty() const { return false; }

    template <class Body>
    void for_each(const Body& body) const {
      if (stay == Stay::queries) {
        metadata.for_keys(machine, block, [&](io::Range key) { body(PassingTile{block, key}); });
      } else {
        metadata.for_queries(machine, block, [&](io::Range query) {
          body(PassingTile{query, block});
        });
      }
    }
  };

  template <io::Machine M>
  Tiles<M> open(M& machine, io::Range block) const {
    return {machine, metadata_, block, stay_};
  }

 private:
  const NmMetadata& metadata_;
  std::int64_t extent_, block_;
  Stay stay_;
};

}  // namespace attest::schedules
