#include "schedules/testing/whole_rows.hpp"

#include <cstdint>
#include <map>
#include <set>

namespace attest::schedules::testing {
namespace {

using Kind = io::WordMove::Kind;

// A word in one place from when it comes to when it goes: an element of an input that was loaded,
// or of a gradient that is stored sooner or later.
struct Stay {
  io::SlowWord word;
  std::size_t begin = 0, end = 0;
  std::size_t first_sum = 0;  // the first time something was added; end if never
};

std::vector<Stay> stays_of(const std::vector<io::WordMove>& moves) {
  std::vector<Stay> stays;
  std::map<std::int64_t, Stay> present;  // by place
  const auto leave = [&](std::int64_t place, std::size_t now) {
    const auto found = present.find(place);
    if (found == present.end()) return;
    Stay& stay = found->second;
    stay.end = now;
    if (stay.first_sum == 0) stay.first_sum = now;
    if (!stay.word.matrix.empty()) stays.push_back(stay);
    present.erase(found);
  };
  for (std::size_t now = 0; now < moves.size(); ++now) {
    const io::WordMove& move = moves[now];
    const bool comes = move.kind == Kind::load || move.kind == Kind::clear;
    if (comes || move.kind == Kind::free) leave(move.place, now);
    if (comes) present[move.place] = {move.slow, now, 0, 0};
    const auto found = present.find(move.place);
    if (found == present.end()) continue;
    if (move.kind == Kind::accumulate && found->second.first_sum == 0) {
      found->second.first_sum = now;
    }
    if (move.kind == Kind::store) found->second.word = move.slow;
  }
  return stays;
}

}  // namespace

std::string why_not_whole(const std::vector<io::WordMove>& moves) {
  for (const io::WordMove& move : moves) {
    if (move.kind != Kind::store) continue;
    if (move.slow.matrix == "P" || move.slow.matrix == "dS") return "stores " + move.slow.matrix;
  }
  const std::map<std::string, std::vector<std::string>> inputs_of{
      {"dQ", {"Q", "dO"}}, {"dK", {"K", "V"}}, {"dV", {"K", "V"}}};
  const std::vector<Stay> stays = stays_of(moves);
  for (const Stay& gradient : stays) {
    const auto inputs = inputs_of.find(gradient.word.matrix);
    if (inputs == inputs_of.end()) continue;
    for (const Stay& input : stays) {
      if (input.word.row != gradient.word.row || input.begin <= gradient.first_sum) continue;
      if (input.begin >= gradient.end) continue;
      for (const std::string& name : inputs->second) {
        if (input.word.matrix == name) return "a gradient stays and inputs come";
      }
    }
  }
  return "";
}

VisitWords visit_words(const std::vector<io::WordMove>& moves) {
  // dO comes with Q, and once more where D is made without Q; V comes with K.
  const std::map<std::string, int> counted{{"Q", 2}, {"dQ", 1}, {"K", 2}, {"dK", 1}, {"dV", 1}};
  VisitWords words;
  std::set<io::SlowWord> seen;
  for (const Stay& stay : stays_of(moves)) {
    const auto found = counted.find(stay.word.matrix);
    if (found == counted.end()) continue;
    const bool gradient = stay.word.matrix.front() == 'd';
    if (gradient && stay.first_sum == stay.end) continue;  // a zero that is stored
    words.arrivals += found->second;
    if (seen.insert(stay.word).second) words.once += found->second;
  }
  const std::set<std::string> matrices{"Q", "K", "V", "dO", "dQ", "dK", "dV"};
  for (const io::WordMove& move : moves) {
    const bool moved = move.kind == Kind::load || move.kind == Kind::store;
    if (moved && matrices.count(move.slow.matrix) > 0) ++words.moved;
  }
  return words;
}

}  // namespace attest::schedules::testing
