#pragma once

#include <optional>
#include <string>

#include "core/registry.hpp"
#include "io/schedule/schedule.hpp"

namespace attest::certify::cli {

/// Options of `attest count --kernel`.
struct CacheCountOptions {
  std::string kernel, problem, cache, direction = "forward";
  bool json = false;
};

/// Simulates one call of a kernel with a cache and prints its traffic beside the bounds. Exit code
/// 3 where it moves less than the bound: it is outside the bound's class, or does not compute
/// attention.  [certify/count/cache_count_test "lines are judged"]
int count_cache(const Registry& registry, const io::ScheduleRegistry& schedules,
                const CacheCountOptions& options);

}  // namespace attest::certify::cli
