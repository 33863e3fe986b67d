#pragma once

#include <vector>

#include "certify/reproduce/claims/triton_pass.hpp"
#include "certify/reproduce/experiment.hpp"

/// Words of a flash attention in Triton, counted on an emulated GPU, against the fast memory of its
/// blocks.
namespace attest::certify {

/// Holds the passes of each direction that has some against the order of loops that they follow,
/// the schedules and the lower bound for the same fast memory. Passes that spill are in the table
/// alone. [certify/reproduce/claims/triton_words_test]
Findings triton_words(const io::ScheduleRegistry& schedules, const std::vector<TritonPass>& passes);

}  // namespace attest::certify
