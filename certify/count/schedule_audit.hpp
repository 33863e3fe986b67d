#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "certify/campaign/campaign_options.hpp"
#include "core/abi/attest_kernel.h"
#include "core/moved_words.hpp"
#include "core/problem.hpp"
#include "io/schedule/schedule_count.hpp"
#include "proptest/values/generator.hpp"

/// The I/O of a kernel that names a schedule: the words of that schedule in the fast memory that
/// the kernel declares, beside the lower bounds.
namespace attest::certify {

/// The code of a kernel, counted as it ran on one thread.
struct CodeCount {
  MovedWords words;
  std::int64_t fast_words = 0;     // M of the bound: its workspace, in the narrowest words
  std::optional<io::Bound> lower;  // the greatest lower bound for the class of its schedule
};

struct CountedProblem {
  Problem problem;
  io::ScheduleCount count;
  std::optional<CodeCount> of_code = std::nullopt;  // of a kernel whose code counts its words

  /// Words that the code moves; where it does not count them, those of its schedule.
  std::int64_t moved_words() const {
    return of_code ? of_code->words.total() : count.counted.total_words().value();
  }

  /// moved_words() over the greatest lower bound in the same memory; nothing if none applies or it
  /// is 0.
  std::optional<double> ratio() const;
};

struct ScheduleAudit {
  std::string schedule;                  // as the kernel names it
  std::int64_t fast_memory_bytes = 0;    // as it declares; 0: not declared, each count in its peak
  std::vector<CountedProblem> table;     // model shapes, counted dry
  std::uint64_t cases = 0;               // generated cases counted with data
  std::uint64_t equal_bits = 0;          // of them, those where the kernel gave the same bits
  std::vector<std::string> not_counted;  // problems the schedule does not take, and why
  std::vector<std::string> violations;   // each with the command that shows it
};

/// Problems that a schedule is counted on: model shapes and generated cases, all with the mask if
/// there is one.
struct AuditedProblems {
  proptest::Tier tier = proptest::Tier::smoke;
  std::uint64_t seed = 1;
  std::optional<CampaignMask> mask;
  Shapes shapes = Shapes::model;
};

/// The fields of a description that name one.
enum class NamedSchedule : std::uint8_t { schedule, schedule_backward };

/// Counts a schedule that a kernel names, its `schedule` or its `schedule_backward`; nothing when
/// it names none. For a schedule over lists, problems without a mask of pairs are counted with the
/// one without lists (io::spec_without_lists).
///
/// Violated is: a string that is no schedule's, or has parameters with which a known schedule takes
/// no problem that it takes without; a schedule of a direction that the kernel does not claim, or
/// of another one than the field is for; a count other than the closed form, a tile beyond the
/// declared fast memory, fewer words than a lower bound. An unknown schedule, or a claimed problem
/// that it does not take, is listed as not counted. Equal bits are
/// reported, not required: other arithmetic in the same order of moves is no fault.
/// Where the code of the kernel counts its words, it runs on each model shape, too: other bits than
/// those of the kernel, and fewer words than every kernel must move in the memory of its workspace,
/// are violations.
/// [certify/count/schedule_audit_test]
std::optional<ScheduleAudit> audit_schedule(const io::ScheduleRegistry& schedules,
                                            const attest_kernel& kernel, NamedSchedule which,
                                            const AuditedProblems& problems,
                                            const CountedCode& code = {});

}  // namespace attest::certify
