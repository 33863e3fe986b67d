#pragma once

#include <cstdint>
#include <functional>
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
  io::KernelClass kernel;  // of the schedule with these tiles, on the problem
};

/// Tiles left open are those that move the fewest words; nothing when none fit, or when the
/// schedule reads the lists of a pattern and the problem has none. Throws InternalError if walk and
/// closed form differ.  [certify/reproduce/experiment_test "a walk that differs"]
std::optional<Counted> count_words(const io::ScheduleRegistry& schedules, const std::string& text,
                                   const Problem& problem, std::int64_t fast_words);

/// Arithmetic of a recorded run, a word at a time.
struct Arithmetic {
  std::int64_t multiply_adds = 0;  // a product of two words added to a third
  std::int64_t others = 0;         // exponentials, quotients, rescalings, maxima, sums

  std::int64_t flops() const { return 2 * multiply_adds + others; }
};

/// Records a schedule with its tiles given and counts what it computes. Cost: linear in that.
/// [certify/reproduce/experiment_test "arithmetic is counted from the recorded run"]
Arithmetic count_arithmetic(const io::ScheduleRegistry& schedules, const std::string& text,
                            const Problem& problem);

/// `d^2 2^(k/steps)` for k from low*steps to high*steps, whole words, ascending.
std::vector<std::int64_t> fast_memory_grid(std::int64_t head_dim, int low, int high, int steps);

/// The greatest lower bound of kernels that declare nothing; 0 when none applies.
std::int64_t lower_bound(Direction direction, const Problem& problem, std::int64_t fast_words);

/// A square problem of one head: seqlen_q = seqlen_k, one head dimension.
Problem square_problem(std::int64_t seqlen, std::int64_t head_dim);

/// The papers' own tiles for a fast memory, whatever they need: B_c = ceil(M / 4d) keys and
/// B_r = min(B_c, d) queries (Dao et al. 2022, Algorithm 1), sides of floor(sqrt(M / 4)) (Saha and
/// Ye 2024, Algorithm 1). `schedule` is flash1, flash1_bwd, square_tiled or square_tiled_bwd.
std::string paper_tiles(const std::string& schedule, std::int64_t fast_words,
                        std::int64_t head_dim);

/// Where one curve over fast memory falls below another.
struct Crossing {
  std::int64_t first = 0;  // the least size of the grid at which it is no higher
  std::int64_t last = 0;   // the least size from which on it never is higher again
};

/// Words for a fast memory; nothing where nothing fits.
using WordsAt = std::function<std::optional<std::int64_t>(std::int64_t fast_words)>;

/// Compares `later` with `sooner` at every size of an ascending grid; where one has nothing it is
/// the higher. Nothing when `later` is no higher from the first size on, or is higher at the last.
/// [certify/reproduce/experiment_test "a crossing"]
std::optional<Crossing> crossing(const std::vector<std::int64_t>& grid, const WordsAt& sooner,
                                 const WordsAt& later);

}  // namespace attest::certify
