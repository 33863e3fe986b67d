#include "io/recording/pebbles.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/error.hpp"

namespace attest::io {
namespace {

// Vertices of a place or a word of slow memory that holds nothing, or a constant.
constexpr Vertex kNothing = -1, kConstant = -2;

class Follower {
 public:
  Follower(const Dag& dag, const InputName& input) : dag_(dag), input_(input) {
    for (Vertex vertex = 0; vertex < dag.size(); ++vertex) {
      if (!dag.is_input(vertex)) formed_.emplace(distinct(dag.operands(vertex)), vertex);
    }
  }

  PebbleTrace follow(const std::vector<WordMove>& moves) && {
    for (std::size_t index = 0; index < moves.size() && !trace_.refusal; ++index) {
      step(moves[index]);
      if (trace_.refusal) trace_.refusal = "move " + std::to_string(index) + ": " + *trace_.refusal;
    }
    return std::move(trace_);
  }

 private:
  static std::vector<Vertex> distinct(std::vector<Vertex> vertices) {
    std::sort(vertices.begin(), vertices.end());
    vertices.erase(std::unique(vertices.begin(), vertices.end()), vertices.end());
    return vertices;
  }

  Vertex held(std::int64_t place) const {
    const auto found = places_.find(place);
    return found == places_.end() ? kNothing : found->second;
  }

  void refuse(const std::string& why) { trace_.refusal = why; }

  void step(const WordMove& move) {
    switch (move.kind) {
      case WordMove::Kind::load:
        return load(move);
      case WordMove::Kind::store:
        return store(move);
      case WordMove::Kind::clear:
        return put(move.place, kConstant);
      case WordMove::Kind::free:
        return put(move.place, kNothing);
      case WordMove::Kind::copy:
        if (held(move.operands[0]) == kNothing) return refuse("copies a word that nothing wrote");
        return put(move.place, held(move.operands[0]));
      case WordMove::Kind::form:
        return form(move, {});
      case WordMove::Kind::accumulate:
        return form(move, {move.place});
      case WordMove::Kind::rescale:
        if (held(move.place) != kConstant) form(move, {move.place});
        return;
    }
  }

  // The place holds another word from now on; the old one is freed with its last place.
  void put(std::int64_t place, Vertex vertex) {
    const Vertex before = held(place);
    if (vertex >= 0) ++red_[vertex];
    places_[place] = vertex;
    if (before >= 0 && --red_[before] == 0) trace_.moves.push_back({Rule::free, before});
  }

  void load(const WordMove& move) {
    auto found = slow_.find(move.slow);
    if (found == slow_.end()) {
      const auto name = input_(move.slow);
      if (!name) return refuse("reads " + text(move.slow) + ", which nothing wrote");
      found = slow_.emplace(move.slow, dag_.find(name->symbol, name->indices)).first;
    }
    if (found->second == kConstant) {
      ++trace_.constant_reads;
    } else {
      put(move.place, kNothing);
      trace_.moves.push_back({Rule::load, found->second});
    }
    put(move.place, found->second);
  }

  void store(const WordMove& move) {
    const Vertex vertex = held(move.place);
    if (vertex == kNothing) return refuse("stores to " + text(move.slow) + " what nothing wrote");
    if (vertex == kConstant) {
      ++trace_.constant_writes;
    } else {
      trace_.moves.push_back({Rule::store, vertex});
    }
    slow_[move.slow] = vertex;
  }

  void form(const WordMove& move, std::vector<std::int64_t> places) {
    places.insert(places.end(), move.operands.begin(), move.operands.end());
    std::vector<Vertex> operands;
    for (const std::int64_t place : places) {
      const Vertex vertex = held(place);
      if (vertex == kNothing) return refuse("uses a word that nothing wrote");
      if (vertex != kConstant) operands.push_back(vertex);
    }
    operands = distinct(std::move(operands));
    if (operands.empty()) return put(move.place, kConstant);
    // The first term is the sum, or the maximum, of itself.
    const bool itself = move.kind == WordMove::Kind::accumulate && held(move.place) == kConstant &&
                        operands.size() == 1;
    if (itself) return put(move.place, operands[0]);
    const auto [first, last] = formed_.equal_range(operands);
    if (first == last) {
      std::string names;
      for (const Vertex vertex : operands) names += " " + dag_.name(vertex).to_string();
      return refuse("no word of the computation is formed from" + names);
    }
    if (std::next(first) != last) throw InternalError("two words are formed from the same words");
    const Vertex vertex = first->second;
    trace_.moves.push_back({Rule::compute, vertex});
    put(move.place, vertex);
  }

  static std::string text(const SlowWord& word) {
    return word.matrix + "[" + std::to_string(word.row) + "," + std::to_string(word.column) + "]";
  }

  const Dag& dag_;
  const InputName& input_;
  std::multimap<std::vector<Vertex>, Vertex> formed_;  // by distinct operands
  std::unordered_map<std::int64_t, Vertex> places_;
  std::unordered_map<Vertex, std::int64_t> red_;  // places that hold it
  std::map<SlowWord, Vertex> slow_;
  PebbleTrace trace_;
};

}  // namespace

PebbleTrace as_pebbles(const Dag& dag, const std::vector<WordMove>& moves, const InputName& input) {
  return Follower(dag, input).follow(moves);
}

}  // namespace attest::io
