#include "io/bounds/extent.hpp"

#include <algorithm>
#include <vector>

#include "io/machine/words.hpp"

namespace attest::io {
namespace {

// The visible structure of one sequence of one head, without the head dimensions.
struct Seen {
  std::int64_t pairs = 0, rows_many = 0, rows_one = 0, columns_many = 0, columns_seen = 0;
};

Seen seen_without_mask(const Sequence& sequence) {
  Seen seen;
  if (sequence.visible_keys == 0 || sequence.q_length == 0) return seen;
  seen.columns_seen = sequence.visible_keys;
  if (sequence.visible_keys == 1) {
    seen.rows_one = sequence.q_length;
    return seen;
  }
  seen.pairs = (Words(sequence.q_length) * sequence.visible_keys).value();
  seen.rows_many = sequence.q_length;
  seen.columns_many = sequence.visible_keys;
  return seen;
}

void count_row(std::int64_t keys, Seen& seen) {
  if (keys >= 2) {
    ++seen.rows_many;
    seen.pairs = (Words(seen.pairs) + keys).value();
  } else if (keys == 1) {
    ++seen.rows_one;
  }
}

// Keys covered by at least one of the ranges, from the changes of the cover at each key.
std::int64_t covered(const std::vector<std::int64_t>& changes) {
  std::int64_t depth = 0;
  std::int64_t count = 0;
  for (const std::int64_t change : changes) {
    depth += change;
    if (depth > 0) ++count;
  }
  return count;
}

Seen seen_in_band(const Pattern& pattern, const Sequence& sequence) {
  Seen seen;
  const auto ends = static_cast<std::size_t>(sequence.k_length) + 1;
  std::vector<std::int64_t> any(ends), many(ends);
  for (std::int64_t i = 0; i < sequence.q_length; ++i) {
    const KeyRange band = pattern.band(sequence, i);
    const std::int64_t keys = std::max<std::int64_t>(band.end - band.begin, 0);
    if (keys == 0) continue;
    count_row(keys, seen);
    const auto begin = static_cast<std::size_t>(band.begin);
    const auto end = static_cast<std::size_t>(band.end);
    ++any[begin];
    --any[end];
    if (keys >= 2) {
      ++many[begin];
      --many[end];
    }
  }
  seen.columns_seen = covered(any);
  seen.columns_many = covered(many);
  return seen;
}

Seen seen_one_by_one(const Pattern& pattern, const Sequence& sequence) {
  Seen seen;
  std::vector<char> any(static_cast<std::size_t>(sequence.k_length)), many = any;
  std::vector<std::size_t> row;
  for (std::int64_t i = 0; i < sequence.q_length; ++i) {
    row.clear();
    for (std::int64_t j = 0; j < sequence.visible_keys; ++j) {
      if (pattern.visible(sequence, i, j)) row.push_back(static_cast<std::size_t>(j));
    }
    count_row(static_cast<std::int64_t>(row.size()), seen);
    for (const std::size_t j : row) {
      any[j] = 1;
      if (row.size() >= 2) many[j] = 1;
    }
  }
  seen.columns_seen = std::count(any.begin(), any.end(), 1);
  seen.columns_many = std::count(many.begin(), many.end(), 1);
  return seen;
}

void add(std::int64_t& total, Words heads, Words count) { total = (total + heads * count).value(); }

}  // namespace

Extent extent_of(const Problem& problem) {
  problem.validate();
  Extent extent;
  extent.head_dim_qk = problem.head_dim_qk;
  extent.head_dim_v = problem.head_dim_v;
  for (const Sequence& sequence : problem.sequences()) {
    const Seen seen = problem.mask.boolean    ? seen_one_by_one(problem.mask, sequence)
                      : problem.mask.banded() ? seen_in_band(problem.mask, sequence)
                                              : seen_without_mask(sequence);
    add(extent.rows, problem.num_heads_q, sequence.q_length);
    add(extent.keys, problem.num_heads_kv, sequence.visible_keys);
    add(extent.all_pairs, problem.num_heads_q, Words(sequence.q_length) * sequence.visible_keys);
    add(extent.pairs, problem.num_heads_q, seen.pairs);
    add(extent.rows_many, problem.num_heads_q, seen.rows_many);
    add(extent.rows_one, problem.num_heads_q, seen.rows_one);
    add(extent.columns_many, problem.num_heads_kv, seen.columns_many);
    add(extent.columns_seen, problem.num_heads_kv, seen.columns_seen);
  }
  return extent;
}

Extent dense_extent(std::int64_t seqlen_q, std::int64_t seqlen_k, std::int64_t head_dim_qk,
                    std::int64_t head_dim_v) {
  Problem problem;
  problem.seqlen_q = seqlen_q;
  problem.seqlen_k = seqlen_k;
  problem.head_dim_qk = head_dim_qk;
  problem.head_dim_v = head_dim_v;
  for (const std::int64_t size : {seqlen_q, seqlen_k, head_dim_qk, head_dim_v}) {
    if (size < 1) {
      throw InvalidProblem("extent: a size is " + std::to_string(size) + "; it must be at least 1");
    }
  }
  return extent_of(problem);
}

}  // namespace attest::io
