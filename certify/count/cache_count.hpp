#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/problem.hpp"
#include "io/schedule/best_schedule.hpp"
#include "io/schedule/schedule_count.hpp"

/// The traffic of a kernel of which only the machine code is known: its call, simulated with a
/// cache, beside what every kernel must move.
namespace attest::certify {

/// A cache with least-recently-used replacement that writes back and allocates on writes.
struct CacheGeometry {
  std::int64_t bytes = 0, ways = 0, line_bytes = 0;

  /// "SIZE,ASSOC,LINE" in bytes, ways, bytes.
  /// Requires: positive whole numbers, a line of 32 to 1024 bytes (no access is wider), a power of
  /// two of sets. Else throws InvalidProblem.  [certify/count/cache_count_test "geometry"]
  static CacheGeometry parse(const std::string& text);
  std::string to_string() const;
};

/// Lines between the cache and the memory below it, in one call; the cache is empty before it and
/// written back after it.
struct CacheLines {
  std::int64_t read = 0;       // fetched because they were read
  std::int64_t allocated = 0;  // fetched because a part was written
  // Changed lines that left, those left over at the end included; two that one access over a line's
  // end drove out count once.
  std::int64_t written_back = 0;
};

/// One call of a kernel, for `attest simulated-call`.
struct CallToSimulate {
  std::string kernel;  // a built-in name, or PATH or PATH:NAME of a library
  std::string problem;
  Direction direction = Direction::forward;
};

/// Runs `program simulated-call` under valgrind's callgrind and reads what its cache counted. One
/// thread; a vector unit up to AVX2. The filter in front of the cache adds two lines to it.
///
/// Requires: valgrind, a kernel that takes the problem. Else throws InvalidProblem with the reason
///           of the call or of valgrind.
/// Cost:     the call, instruction by instruction under valgrind.
/// [certify/count/cache_simulation_test "a simulated cache counts"]
CacheLines simulate_call(const CallToSimulate& call, const CacheGeometry& cache,
                         const std::string& program);

/// Returns the counts of callgrind's file.
/// Requires: events and totals, as callgrind 3.19 writes them. Else throws InvalidProblem.
/// [certify/count/cache_count_test "callgrind's file"]
CacheLines parse_callgrind(const std::string& text);

/// A simulated call beside the bounds for as much fast memory as it had: cache, filter and
/// registers.
struct CacheCount {
  CallToSimulate call;
  Problem problem;
  CacheGeometry cache;
  CacheLines lines;
  std::int64_t fast_bytes = 0;
  std::int64_t narrowest_bytes = 4;  // width of the narrowest word that moves
  io::KernelClass kernel;            // assumed: nothing is known
  std::vector<io::Bound> bounds;
  std::optional<io::Bound> lower;
  io::BestSchedule best;                       // with the same fast memory
  std::optional<io::ScheduleCount> of_itself;  // when the kernel names a schedule
  std::string own_refusal;                     // why it is not counted though it names one

  std::int64_t moved_bytes() const {
    return (lines.read + lines.allocated + lines.written_back) * cache.line_bytes;
  }
  std::int64_t moved_bytes_without_allocation() const {
    return (lines.read + lines.written_back) * cache.line_bytes;
  }
  /// Bytes moved over the greatest lower bound; nothing if none applies or it is 0.
  std::optional<double> ratio() const;

  /// Tells whether fewer bytes moved than the greatest lower bound allows.
  bool below_bound() const { return ratio().value_or(1) < 1; }
};

/// Judges simulated lines: bounds of a kernel that declares nothing, the best schedule, and the
/// kernel's own exact count where it names a schedule.  [certify/count/cache_count_test]
CacheCount judge_lines(const io::ScheduleRegistry& schedules, const attest_kernel& kernel,
                       const CallToSimulate& call, const CacheGeometry& cache,
                       const CacheLines& lines);

/// As an object: certify/schemas/cache_count.schema.json describes the fields.
nlohmann::json cache_count_json(const CacheCount& count, int exit_code);

}  // namespace attest::certify
