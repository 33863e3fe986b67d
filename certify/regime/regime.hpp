#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "io/bounds/bound.hpp"
#include "io/schedule/schedule.hpp"

/// On which side of M = d^2 a fast memory lies, and what the best schedule moves there.
namespace attest::certify {

/// A width that words of attention have on devices; fp8 is a width only, no kernel has it.
struct WordType {
  std::string name;
  std::int64_t bytes;
};

/// f32, bf16, fp8.
const std::vector<WordType>& word_types();

/// Throws InvalidProblem with the nearest name when there is none.  [certify/regime/regime_test]
const WordType& find_word_type(const std::string& name);

/// The cases of Saha and Ye 2024 and Li et al. 2024.
enum class CacheRegime : std::uint8_t {
  large,  // M >= d_k d_v: FlashAttention's order is optimal up to a constant
  small,  // M < d_k d_v: square tiles move less
};
std::string name(CacheRegime regime);

/// M, counted in words of one width, beside d_k d_v.
struct CacheSize {
  std::int64_t fast_words = 0;
  double ratio = 0;  // M / (d_k d_v)
  CacheRegime regime = CacheRegime::large;
};

/// Requires: all at least 1, and at least one word. Else throws InvalidProblem.
/// [certify/regime/regime_test "both sides"]
CacheSize cache_size(std::int64_t fast_bytes, const WordType& word, std::int64_t head_dim_qk,
                     std::int64_t head_dim_v);

/// The query heads of a group as rows of one head, which reads K and V once for all of them; the
/// problem as it is where a mask tells the rows of a head apart.
/// [certify/regime/regime_test "a group that sees every key"]
Problem with_groups_as_rows(const Problem& problem);

/// Words that the best schedule moves across a boundary, all of one width, for all heads and batch
/// entries. The schedules read K and V apart even where `storage` says that they are one; the bound
/// counts distinct words (K3).
struct Prediction {
  Direction direction = Direction::forward;
  std::string schedule;            // with its tiles
  std::int64_t words = 0;          // read and written
  std::optional<io::Bound> lower;  // for kernels that declare nothing
  std::optional<double> ratio;     // words over the bound
  std::string refusal;             // why there is none; then the rest is empty
};

/// Searches all schedules of the direction.
/// Cost:     tens of milliseconds, and linear in the sequence lengths with a mask; where lists are
///           candidates, linear in queries times keys, a second for 4096 of each.
/// [certify/regime/regime_test "a prediction is the best schedule's count"]
Prediction predict(const io::ScheduleRegistry& schedules, Direction direction,
                   const Problem& problem, std::int64_t fast_words,
                   io::Storage storage = io::Storage::disjoint);

}  // namespace attest::certify
