#pragma once

#include <string>
#include <vector>

#include "certify/reproduce/experiment.hpp"

/// I/O against M: exponents on both sides of d^2 and where the two cases meet.
namespace attest::certify {

/// Tiles that a comparison takes: those that move the fewest words, or those of the papers' rules.
enum class Tiles : std::uint8_t { best, papers };

/// Schedules for each case, by name.
struct Rivals {
  std::string whose;
  std::vector<std::string> small, large;
  Tiles tiles = Tiles::best;
};

struct CitedClaim {
  std::string text, source;  // the text in our words
};

/// One direction and what the papers say of it.
struct IoSubject {
  std::string name, title;
  Direction direction;
  CitedClaim large, small, bound;
  std::string bound_note, meeting_source;
  std::vector<Rivals> rivals;  // the papers' own first, then the best known
};

/// Fits both exponents, looks for the crossing, compares counts with bounds.
/// [certify/reproduce/experiment_test "schedules that do not follow the claims are seen not to"]
Experiment io_against_fast_memory(IoSubject subject, int place);

}  // namespace attest::certify
