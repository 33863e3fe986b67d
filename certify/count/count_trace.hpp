#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "io/replay/cache.hpp"
#include "io/schedule/schedule.hpp"

/// Recorded runs: written to a file, replayed by caches.
namespace attest::certify {

struct TraceOptions {
  std::string file;                      // empty: none
  std::vector<io::CacheSpec> caches;     // empty: none
  std::int64_t most_moves = 50'000'000;  // a run with more is refused
};

struct Replayed {
  io::CacheSpec cache;
  io::CacheTraffic traffic;
};

/// Records the schedule if a file or a cache asks for it. The file has the line `attest-trace-1`,
/// then `schedule …`, `problem …`, then one move to a line (io/recording/trace_text.hpp); it is
/// old, new or absent, never half.
///
/// Requires: one batch entry and one head, no more moves than `most_moves`. Else throws
/// InvalidProblem.  [certify/count/count_test "recorded"]
/// Cost:     linear in the multiply-adds of the schedule.
std::vector<Replayed> record_schedule(const io::Schedule& schedule, const Problem& problem,
                                      io::FastMemory capacity, const TraceOptions& options);

}  // namespace attest::certify
