#pragma once

#include <cstdint>

#include "io/machine/words.hpp"
#include "schedules/engine/head.hpp"

/// From the ABI's arguments to the matrices of one head, and from one head to all of them.
namespace attest::schedules {

/// One (batch, query head); of a group, one (batch, K/V head).
struct HeadIndex {
  std::int64_t batch, head;
};

ForwardHead forward_head(const attest_forward_args& args, HeadIndex index);
BackwardHead backward_head(const attest_backward_args& args, HeadIndex index);

/// Tells whether all batch entries have the same extents and mask.
bool uniform_batches(const attest_problem& problem);

/// Tells whether a batch entry has exactly one query, or one key.
bool has_single_query(const attest_problem& problem);
bool has_single_key(const attest_problem& problem);

/// Throws InvalidProblem for what no schedule counts: f64.
void require_countable(const attest_problem& problem);

/// Throws InvalidProblem for softcap, which schedules that keep P and not S cannot go back through.
void require_no_softcap(const attest_problem& problem);

/// Throws InvalidProblem unless there is one batch entry with one head: the words of several have
/// the same names in a recording.
void require_one_head(const attest_problem& problem);

/// body(HeadIndex) for `count` heads of every batch entry; alike ones in one step on a machine
/// without data.
template <class M, class Body>
void for_each_head(M& machine, const attest_problem& problem, std::int64_t count,
                   const Body& body) {
  const auto heads = [&](std::int64_t batch) {
    machine.for_tiles(io::Range{0, count}, 1, [&](io::Range head) {
      body(HeadIndex{batch, head.begin});
    });
  };
  if (uniform_batches(problem)) {
    machine.for_tiles(io::Range{0, problem.batch}, 1, [&](io::Range batch) { heads(batch.begin); });
  } else {
    for (std::int64_t batch = 0; batch < problem.batch; ++batch) heads(batch);
  }
}

/// The sum of cost(HeadIndex) over `count` heads of every batch entry.
template <class Cost>
io::Traffic sum_over_heads(const attest_problem& problem, std::int64_t count, const Cost& cost) {
  const std::int64_t distinct = uniform_batches(problem) ? 1 : problem.batch;
  const io::Words alike = io::Words(problem.batch / distinct) * count;
  io::Traffic total;
  for (std::int64_t batch = 0; batch < distinct; ++batch) {
    total = then(total, times(alike, cost(HeadIndex{batch, 0})));
  }
  return total;
}

}  // namespace attest::schedules
