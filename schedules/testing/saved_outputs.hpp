#pragma once

#include <cstdint>
#include <set>

#include "core/problem.hpp"
#include "io/bounds/extent.hpp"
#include "io/recording/word_move.hpp"
#include "io/schedule/schedule.hpp"

namespace attest::schedules::testing {

/// Tells whether the run of a problem with one head loads as many words of O, and of LSE or its
/// part m, as the bound for io::SavedOutputs::read counts.
inline bool reads_saved_outputs(const io::Schedule& schedule, const Problem& problem) {
  struct SavedWords : io::WordMoveSink {
    std::set<io::SlowWord> output, statistics;
    void take(const io::WordMove& move) override {
      if (move.kind != io::WordMove::Kind::load) return;
      if (move.slow.matrix == "O") output.insert(move.slow);
      if (move.slow.matrix == "LSE" || move.slow.matrix == "m") statistics.insert(move.slow);
    }
  };
  SavedWords words;
  schedule.record(io::FastMemory{}, words);
  const std::int64_t rows = io::extent_of(problem).rows_many;
  return static_cast<std::int64_t>(words.output.size()) >= rows * problem.head_dim_v &&
         static_cast<std::int64_t>(words.statistics.size()) >= rows;
}

}  // namespace attest::schedules::testing
