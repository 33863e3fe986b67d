#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "certify/reproduce/experiment.hpp"

/// Words of a flash attention in Triton, counted on an emulated GPU, against the fast memory of its
/// blocks.
namespace attest::certify {

/// One launch of docs/how-to/wild/triton_flash.py, forward, one head of f16 without a mask, as
/// docs/how-to/wild/triton_words.py wrote it.
struct TritonLaunch {
  std::int64_t head_dim = 0, tile = 0, seqlen = 0;
  std::int64_t read_q = 0, read_k = 0, read_v = 0;  // words
  std::int64_t moved_bytes = 0, fast_bytes = 0;
  bool spills = false;  // its registers do not hold what it keeps
};

/// Reads JSON lines. Throws InvalidProblem with the number of the line that is none of them.
/// [certify/reproduce/claims/triton_words_test]
std::vector<TritonLaunch> parse_triton_words(const std::string& lines);

/// The lines of certify/reproduce/records/triton_words.jsonl.
std::string recorded_triton_words();

/// Holds the launches against the order of loops that they follow, the schedules and the lower
/// bound for the same fast memory. Launches that spill are in the table alone.
/// [certify/reproduce/claims/triton_words_test]
Findings triton_words(const io::ScheduleRegistry& schedules,
                      const std::vector<TritonLaunch>& launches);

}  // namespace attest::certify
