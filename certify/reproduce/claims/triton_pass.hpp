#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/schedule/schedule.hpp"

/// Passes of a flash attention in Triton, as docs/how-to/wild/triton_words.py counted them.
namespace attest::certify {

/// Words of a tensor that moved.
struct WordsOfTensor {
  std::int64_t read = 0, written = 0;

  friend bool operator==(const WordsOfTensor&, const WordsOfTensor&) = default;
};

/// One pass of docs/how-to/wild/triton_flash_backward.py: one head of f16 without a mask.
struct TritonPass {
  Direction direction = Direction::forward;
  std::int64_t head_dim = 0, tile = 0, seqlen = 0;
  std::map<std::string, WordsOfTensor> words{};  // by tensor, of all launches
  std::int64_t moved_bytes = 0, fast_bytes = 0;
  bool spills = false;  // the registers of a launch do not hold what it keeps
};

/// Reads JSON lines. Throws InvalidProblem with the number of the line that is none of them.
/// [certify/reproduce/claims/triton_pass_test]
std::vector<TritonPass> parse_triton_words(const std::string& lines);

/// The lines of certify/reproduce/records/triton_words.jsonl.
std::string recorded_triton_words();

/// Returns the words of the pass's order of loops, in closed form: forward a block reads its rows
/// of Q once and all of K and V; backward a block of queries does for dQ, and a block of keys reads
/// its rows of K and V once and all of Q and dO. [certify/reproduce/claims/triton_pass_test]
std::map<std::string, WordsOfTensor> words_of_order(const TritonPass& pass);

}  // namespace attest::certify
