#pragma once

#include "certify/reproduce/experiment.hpp"

/// Schedules that do not do what the papers claim: the broken subjects of experiments.
namespace attest::certify::testing {

/// The built-in kernels.
const Registry& all_kernels();

/// The smoke effort with an experiment's own sizes.
Laboratory laboratory(const io::ScheduleRegistry& schedules,
                      const Registry& kernels = all_kernels());

/// Words that a schedule moves and holds, whatever the problem and the fast memory.
struct FlatWords {
  std::int64_t moved = 1, held = 0;
};

/// Families under the names of all built-in ones, with those words.
io::ScheduleRegistry flat_schedules(FlatWords words);

enum class ForwardResult : std::uint8_t { own, infinite };

/// Changes to the built-in schedules.
struct Alteration {
  ForwardResult forward = ForwardResult::own;  // what counting on data leaves in O
  bool understated = false;                    // the closed form says a quarter of the peak
  bool forgets_reads = false;                  // half of the reads are in no count
  bool blind = false;                          // visits what boolean masks hide too
  bool pays_for_masks = false;                 // reads a word more where there is a boolean mask
  bool slow = false;                           // a run of any family but flash2 runs eight times
};

/// Returns the altered schedules, those without lists or all.
io::ScheduleRegistry altered_schedules(Alteration alteration);
io::ScheduleRegistry all_altered_schedules(Alteration alteration);

}  // namespace attest::certify::testing
