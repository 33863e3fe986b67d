#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "certify/reproduce/experiment.hpp"
#include "core/problem.hpp"
#include "io/bounds/bound.hpp"

/// Counting for experiments.
namespace attest::certify {

/// A schedule's words, walked through and equal to its closed form.
struct Counted {
  std::string schedule;    // with its tiles
  std::int64_t words = 0;  // read and written
  std::int64_t peak = 0;
};

/// Tiles left open are those that move the fewest words; nothing when none fit. Throws
/// InternalError if walk and closed form differ.
std::optional<Counted> count_words(const io::ScheduleRegistry& schedules, const std::string& text,
                                   const Problem& problem, std::int64_t fast_words);

/// `d^2 2^(k/steps)` for k from low*steps to high*steps, whole words, ascending.
std::vector<std::int64_t> fast_memory_grid(std::int64_t head_dim, int low, int high, int steps);

/// The greatest lower bound of kernels that declare nothing; 0 when none applies.
std::int64_t lower_bound(io::Direction direction, const Problem& problem, std::int64_t fast_words);

/// A square problem of one head: seqlen_q = seqlen_k, one head dimension.
Problem square_problem(std::int64_t seqlen, std::int64_t head_dim);

/// The least fast memory from which on `second` moves no more words than `first`, between two
/// sizes; nothing when it does at `low` already, or not at `high`. Both must fit throughout.
std::optional<std::int64_t> crossover(const io::ScheduleRegistry& schedules, const Problem& problem,
                                      const std::vector<std::string>& first,
                                      const std::vector<std::string>& second, std::int64_t low,
                                      std::int64_t high);

}  // namespace attest::certify
