#include "proptest/laws/trials/neighbours.hpp"

#include <algorithm>

#include "proptest/judge/limits.hpp"

namespace attest::proptest {
namespace {

struct Lengths {
  std::int64_t queries, keys;
  std::int64_t existing;  // queries up to the query length
};

std::vector<std::int32_t> ends_of(const std::vector<Lengths>& entries,
                                  std::int64_t Lengths::*length) {
  std::vector<std::int32_t> ends{0};
  for (const Lengths& entry : entries) {
    ends.push_back(ends.back() + static_cast<std::int32_t>(entry.*length));
  }
  return ends;
}

// The problem with these batch entries. Without lists all have the problem's lengths.
Problem with_entries(Problem p, const std::vector<Lengths>& entries) {
  p.batch = static_cast<std::int64_t>(entries.size());
  if (p.query_lengths.kind != QueryLengths::Kind::none) {
    p.query_lengths = {};
    p.query_lengths.kind = QueryLengths::Kind::given;
    for (const Lengths& entry : entries) {
      p.query_lengths.given.push_back(static_cast<std::int32_t>(entry.existing));
    }
  }
  if (p.mask.packed()) {
    p.seqlen_q = p.seqlen_k = 0;
    for (const Lengths& entry : entries) {
      p.seqlen_q = std::max(p.seqlen_q, entry.queries);
      p.seqlen_k = std::max(p.seqlen_k, entry.keys);
    }
    p.mask.cu_seqlens_q = ends_of(entries, &Lengths::queries);
    p.mask.cu_seqlens_k = ends_of(entries, &Lengths::keys);
  } else if (!p.mask.key_lengths.empty()) {
    p.mask.key_lengths.clear();
    for (const Lengths& entry : entries) {
      p.seqlen_k = std::max(p.seqlen_k, entry.keys);
      p.mask.key_lengths.push_back(static_cast<std::int32_t>(entry.keys));
    }
  }
  return p;
}

// Lengths of a neighbour: several tiles longer, or the shortest.
Lengths longer(const attest_description& d, const Problem& p, const Lengths& entry) {
  constexpr std::int64_t kTiles = 129;
  if (p.mask.boolean) return {entry.queries, p.seqlen_k, entry.queries};  // its size stays
  const std::int64_t keys = claimed_keys(d).nearest(entry.keys + kTiles);
  const bool cross = (d.features & ATTEST_CROSS_LENGTHS) != 0;
  const std::int64_t queries = cross ? claimed_queries(d).nearest(entry.queries + 2) : keys;
  // Without lists all entries have the rows of the drawn one.
  return {queries, keys, p.mask.packed() ? queries : entry.queries};
}

Lengths shorter(const attest_description& d) {
  const std::int64_t keys = claimed_keys(d).nearest(1);
  const bool cross = (d.features & ATTEST_CROSS_LENGTHS) != 0;
  return {cross ? claimed_queries(d).nearest(1) : keys, keys, 1};
}

// Copies what belongs to an entry from one tensor into another. `rows`: its rows on axis `axis`,
// the first of them in either.
struct Rows {
  std::int64_t batch, first, count;
};

void copy_rows(const Tensor& from, const Rows& source, Tensor& to, const Rows& target,
               std::size_t axis) {
  const TensorView& view = from.view();
  if (view.rank() == 0) return;
  const std::int64_t others = view.extent(axis == 1 ? 2 : 1),
                     columns = view.rank() == 4 ? view.extent(3) : 1;
  for (std::int64_t row = 0; row < std::min(source.count, target.count); ++row) {
    const std::int64_t a = source.first + row, b = target.first + row;
    for (std::int64_t other = 0; other < others; ++other) {
      for (std::int64_t c = 0; c < columns; ++c) {
        if (axis == 1) {
          to.set(from(source.batch, a, other, c), target.batch, b, other, c);
        } else {
          to.set(from(source.batch, other, a, c), target.batch, other, b, c);
        }
      }
    }
  }
}

struct Entry {
  Rows queries, keys;

  Entry(const Problem& problem, std::size_t place) {
    const Sequence s = problem.sequences()[place];
    queries = {s.tensor_batch, s.q_begin, s.queries()};
    keys = {s.tensor_batch, s.k_begin, s.k_length};
  }
};

constexpr std::size_t kSeqlen = 1, kRowOfLse = 2;

}  // namespace

std::vector<Neighbours> neighbours_of(const attest_description& d, const Problem& p,
                                      std::size_t entry) {
  const Sequence s = p.sequences()[entry];
  const Lengths own{s.q_length, s.visible_keys, s.queries()},
      tall = longer(d, p, {s.q_length, s.visible_keys, s.q_length}), low = shorter(d),
      room{own.queries, p.seqlen_k, own.queries};
  std::vector<Neighbours> all{
      {"alone", with_entries(p, {own}), 0},
      {"as the last of three entries", with_entries(p, {tall, low, own}), 2},
      {"as the second of two entries", with_entries(p, {low, own}), 1}};
  if (!p.mask.key_lengths.empty()) {  // for a kernel that takes no more keys than there are
    all.push_back({"as the first of two entries", with_entries(p, {own, room}), 0});
  }
  return all;
}

InputValues values_beside(const Problem& problem, const InputValues& values, std::size_t entry,
                          const Neighbours& batch, std::uint64_t seed) {
  InputValues beside = make_values(batch.problem, Values::normal, seed);
  const Entry from(problem, entry), to(batch.problem, batch.place);
  copy_rows(values.Q, from.queries, beside.Q, to.queries, kSeqlen);
  copy_rows(values.dO, from.queries, beside.dO, to.queries, kSeqlen);
  copy_rows(values.K, from.keys, beside.K, to.keys, kSeqlen);
  copy_rows(values.V, from.keys, beside.V, to.keys, kSeqlen);
  copy_rows(values.dLSE, from.queries, beside.dLSE, to.queries, kRowOfLse);
  return beside;
}

KernelRun with_entry_of(const KernelRun& run, const Problem& problem, std::size_t entry,
                        const KernelRun& other, const Neighbours& batch) {
  KernelRun result = run;
  const Entry to(problem, entry), from(batch.problem, batch.place);
  copy_rows(other.O, from.queries, result.O, to.queries, kSeqlen);
  copy_rows(other.LSE, from.queries, result.LSE, to.queries, kRowOfLse);
  copy_rows(other.dQ, from.queries, result.dQ, to.queries, kSeqlen);
  copy_rows(other.dK, from.keys, result.dK, to.keys, kSeqlen);
  copy_rows(other.dV, from.keys, result.dV, to.keys, kSeqlen);
  return result;
}

}  // namespace attest::proptest
