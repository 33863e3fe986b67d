#pragma once

#include <algorithm>

#include "core/testing/catch.hpp"
#include "io/machine/counting_machine.hpp"
#include "io/machine/dry_machine.hpp"

namespace attest::sparse::testing {

/// Counted with exactly the peak as capacity, on the machine that moves data and on the one that
/// only counts, and with a word less refused.
template <class Schedule, class Task>
void check_counts(const Schedule& schedule, const Task& task, const io::Traffic& expected) {
  const auto capacity =
      io::FastMemory::of_words(std::max<std::int64_t>(1, expected.peak.words.value()));
  io::CountingMachine counting(capacity);
  schedule.run(counting, task);
  CHECK(counting.traffic() == expected);
  io::DryMachine dry(capacity);
  schedule.run(dry, task);
  CHECK(dry.traffic() == expected);
  if (expected.peak.words <= 1) return;
  io::DryMachine smaller(io::FastMemory::of_words(expected.peak.words.value() - 1));
  CHECK_THROWS_AS(schedule.run(smaller, task), io::CapacityExceeded);
}

}  // namespace attest::sparse::testing
