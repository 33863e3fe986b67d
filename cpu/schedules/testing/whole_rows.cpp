#include "cpu/schedules/testing/whole_rows.hpp"

#include <cstdint>
#include <map>

namespace attest::cpu::testing {
namespace {

// A word in one place from when it comes to when it goes: a row of an input that was loaded, or of
// a gradient that is stored sooner or later.
struct Stay {
  std::string matrix;
  std::int64_t row = 0;
  std::size_t begin = 0, end = 0;
  std::size_t first_sum = 0;  // the first time something was added; end if never
};

std::vector<Stay> stays_of(const std::vector<io::WordMove>& moves) {
  using Kind = io::WordMove::Kind;
  std::vector<Stay> stays;
  std::map<std::int64_t, Stay> present;  // by place
  const auto leave = [&](std::int64_t place, std::size_t now) {
    const auto found = present.find(place);
    if (found == present.end()) return;
    Stay& stay = found->second;
    stay.end = now;
    if (stay.first_sum == 0) stay.first_sum = now;
    if (!stay.matrix.empty()) stays.push_back(stay);
    present.erase(found);
  };
  for (std::size_t now = 0; now < moves.size(); ++now) {
    const io::WordMove& move = moves[now];
    const bool comes = move.kind == Kind::load || move.kind == Kind::clear;
    if (comes || move.kind == Kind::free) leave(move.place, now);
    if (comes) present[move.place] = {move.slow.matrix, move.slow.row, now, 0, 0};
    const auto found = present.find(move.place);
    if (found == present.end()) continue;
    if (move.kind == Kind::accumulate && found->second.first_sum == 0) {
      found->second.first_sum = now;
    }
    if (move.kind == Kind::store) {
      found->second.matrix = move.slow.matrix;
      found->second.row = move.slow.row;
    }
  }
  return stays;
}

}  // namespace

std::string why_not_whole(const std::vector<io::WordMove>& moves) {
  for (const io::WordMove& move : moves) {
    if (move.kind != io::WordMove::Kind::store) continue;
    if (move.slow.matrix == "P" || move.slow.matrix == "dS") return "stores " + move.slow.matrix;
  }
  const std::map<std::string, std::vector<std::string>> inputs_of{
      {"dQ", {"Q", "dO"}}, {"dK", {"K", "V"}}, {"dV", {"K", "V"}}};
  const std::vector<Stay> stays = stays_of(moves);
  for (const Stay& gradient : stays) {
    const auto inputs = inputs_of.find(gradient.matrix);
    if (inputs == inputs_of.end()) continue;
    for (const Stay& input : stays) {
      if (input.row != gradient.row || input.begin <= gradient.first_sum) continue;
      if (input.begin >= gradient.end) continue;
      for (const std::string& name : inputs->second) {
        if (input.matrix == name) return "a gradient stays and inputs come";
      }
    }
  }
  return "";
}

}  // namespace attest::cpu::testing
