#pragma once

#include "certify/reproduce/forward_call.hpp"
#include "io/schedule/schedule.hpp"

namespace attest::certify {

/// Wall clock of several runs, in milliseconds.
struct Timing {
  double median = 0, least = 0, most = 0;
};

/// Runs a schedule natively once to warm up, then `runs` times.
Timing time_runs(const io::Schedule& schedule, const ForwardCall& call, int runs);

/// Faster beyond the spread of both.
bool clearly_faster(const Timing& one, const Timing& other);

}  // namespace attest::certify
