#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "sparse/kernels/lists/pair_lists.hpp"

/// One row against some rows of a list, gathered from where they lie.
namespace attest::sparse {

/// The most rows gathered at once.
inline constexpr std::int64_t kGathered = 64;

/// Rows of one head and one batch entry.
struct SequenceRows {
  const float* first;
  std::int64_t stride, columns;

  const float* operator[](std::int64_t row) const { return first + row * stride; }
};

/// Entries begin .. begin + count - 1 of a list. Requires: count <= kGathered.
struct Gathered {
  RowList list;
  std::int64_t begin, count;

  std::int64_t operator[](std::int64_t n) const { return list[begin + n]; }
};

/// visit(Gathered) for a list from the first entry to the last.
template <class Visit>
void for_gathered(const RowList& list, const Visit& visit) {
  for (std::int64_t begin = 0; begin < list.count; begin += kGathered) {
    const std::int64_t left = list.count - begin;
    visit(Gathered{list, begin, left < kGathered ? left : kGathered});
  }
}

/// x[n] = row . rows[gathered[n]].
void dot_each(const float* row, const SequenceRows& rows, const Gathered& gathered, float* x);

/// sum += sum_n weights[n] rows[gathered[n]], n ascending.
void add_each(float* sum, const float* weights, const SequenceRows& rows, const Gathered& gathered);

/// Products Q(i) . K(j) become scores, softcap(scale x) + ALiBi; slope, where not null, gets the
/// derivative of the softcap. `offset`: the query is aligned with key `offset`, or the key with
/// query `offset`, of which the gathered rows are as far as their index is.
void finish_scores(const attest_problem& problem, std::int64_t head, std::int64_t offset,
                   const Gathered& gathered, float* x, float* slope);

}  // namespace attest::sparse
