#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "io/schedule/schedule.hpp"

namespace attest::schedules {

/// A schedule, with the tiles that are given, and what it does not support of what its direction
/// does.
struct ScheduleEntry {
  const char* schedule;
  const char* summary;
  std::uint32_t no_features = 0;
  std::uint32_t no_dtypes = 0;
  std::int32_t lse_splits = 0;
  std::int32_t delta_from_p = 0;
  std::int32_t lse_split_keys = 0;
};

inline constexpr std::uint32_t kSixteenBit = 1u << ATTEST_BF16 | 1u << ATTEST_F16;

/// flash1 divides O by its sum after every key block and takes it back at the next: a merge of
/// normalized results for each. More key blocks than this, or shorter ones, are refused.
inline constexpr std::int32_t kMostKeyBlocks = 256, kLeastKeys = 8;

/// A schedule as a kernel: the native machine on num_threads threads, with the tiles that its
/// family chooses for the first-level data cache of this machine (description.fast_memory_bytes).
/// The word count of the schedule with that capacity is the count of what runs
/// [schedules/engine/schedule_kernel_test]. A problem that does not fit is refused with
/// ATTEST_UNSUPPORTED. On problems without a mask of pairs, a schedule over lists gives way to the
/// one without lists (ScheduleFamily::without_lists).
///
/// A backward schedule reads O and LSE as flash2 writes them: its forward call is that of `flash2`,
/// and the schedule it names is that of its backward call.
class ScheduleKernel {
 public:
  /// Named prefix and schedule. `flash2` may be null for forward and loss schedules. The entry, the
  /// schedules and `flash2` must outlive it.
  ScheduleKernel(const std::string& prefix, const ScheduleEntry& entry,
                 const io::ScheduleRegistry& schedules, const attest_kernel* flash2);
  ScheduleKernel(const ScheduleKernel&) = delete;
  ScheduleKernel& operator=(const ScheduleKernel&) = delete;

  const attest_kernel& abi() const { return kernel_; }

 private:
  // A family and the tiles that are given.
  struct Choice {
    const io::ScheduleFamily* family = nullptr;
    io::ScheduleSpec spec;
  };

  attest_description describe(const ScheduleEntry& entry) const;
  const Choice& choice_for(const attest_problem& problem) const;
  io::ScheduleSpec tiles_for(const attest_problem& problem) const;
  io::ScheduleSpec chosen_for(const attest_problem& problem) const;
  io::ScheduleSpec smallest_tiles(const Choice& choice) const;
  std::int64_t largest_head_dim(const Choice& choice, const attest_mask& mask) const;
  std::int64_t most_keys(const Choice& choice, std::int64_t head_dim) const;
  bool merges_as_declared(const io::ScheduleSpec& spec, const attest_problem& problem) const;
  io::ScheduleSpec merging_as_declared(io::ScheduleSpec spec, const attest_problem& problem) const;
  template <class Arguments>
  attest_status run(const Arguments& args) const;

  Choice named_, without_lists_;  // the same where the schedule reads no lists
  std::string name_;
  io::FastMemory capacity_;
  std::int32_t most_key_blocks_, least_keys_;
  const attest_kernel* forward_;
  attest_limits limits_{};
  attest_kernel kernel_{};
  mutable std::mutex mutex_;
  mutable std::map<std::vector<std::int64_t>, io::ScheduleSpec> chosen_;
};

}  // namespace attest::schedules
