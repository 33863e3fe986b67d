#include "io/pebble/testing/trace.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace attest::io::testing {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

class RandomTrace {
 public:
  RandomTrace(const Dag& dag, std::int64_t red_pebbles, Rng& rng)
      : dag_(dag),
        red_pebbles_(red_pebbles),
        rng_(rng),
        uses_(at(dag.size())),
        stored_(at(dag.size())),
        output_(at(dag.size())) {
    for (Vertex vertex = 0; vertex < dag.size(); ++vertex) {
      stored_[at(vertex)] = dag.is_input(vertex);
      for (const Vertex operand : dag.operands(vertex)) ++uses_[at(operand)];
    }
    for (const Vertex output : dag.outputs()) output_[at(output)] = true;
  }

  std::vector<Move> make() && {
    for (Vertex vertex = 0; vertex < dag_.size(); ++vertex) {
      if (!dag_.is_input(vertex)) form(vertex);
    }
    while (!held_.empty()) drop(held_.back());
    return std::move(moves_);
  }

 private:
  bool holds(Vertex vertex) const {
    return std::find(held_.begin(), held_.end(), vertex) != held_.end();
  }

  void form(Vertex vertex) {
    const std::vector<Vertex>& operands = dag_.operands(vertex);
    for (const Vertex operand : operands) {
      if (holds(operand)) continue;
      make_room(operands);
      moves_.push_back({Rule::load, operand});
      held_.push_back(operand);
    }
    make_room(operands);
    moves_.push_back({Rule::compute, vertex});
    held_.push_back(vertex);
    for (const Vertex operand : operands) --uses_[at(operand)];
    const std::vector<Vertex> held = held_;
    for (const Vertex word : held) {
      if (uses_[at(word)] == 0 && (!output_[at(word)] || rng_.between(0, 1) == 0)) drop(word);
    }
  }

  void make_room(const std::vector<Vertex>& kept) {
    while (static_cast<std::int64_t>(held_.size()) >= red_pebbles_) {
      std::vector<Vertex> candidates;
      for (const Vertex word : held_) {
        if (std::find(kept.begin(), kept.end(), word) == kept.end()) candidates.push_back(word);
      }
      if (candidates.empty()) throw InternalError("random_trace: too few red pebbles");
      drop(candidates[static_cast<std::size_t>(
          rng_.between(0, static_cast<std::int64_t>(candidates.size()) - 1))]);
    }
  }

  void drop(Vertex vertex) {
    if (!stored_[at(vertex)] && (uses_[at(vertex)] > 0 || output_[at(vertex)])) {
      moves_.push_back({Rule::store, vertex});
      stored_[at(vertex)] = true;
    }
    moves_.push_back({Rule::free, vertex});
    held_.erase(std::find(held_.begin(), held_.end(), vertex));
  }

  const Dag& dag_;
  const std::int64_t red_pebbles_;
  Rng& rng_;
  std::vector<std::int64_t> uses_;  // words still to be formed from it
  std::vector<bool> stored_, output_;
  std::vector<Vertex> held_;
  std::vector<Move> moves_;
};

}  // namespace

std::vector<Move> random_trace(const Dag& dag, std::int64_t red_pebbles, Rng& rng) {
  return RandomTrace(dag, red_pebbles, rng).make();
}

std::vector<Move> row_streamed_trace(const Dag& dag, const AttentionShape& shape,
                                     std::int32_t block) {
  std::vector<Move> moves;
  const auto make = [&](Rule rule, const char* symbol, std::vector<std::int32_t> indices) {
    moves.push_back({rule, dag.find(symbol, std::move(indices))});
  };
  const std::int32_t keys = shape.seqlen_k, d_k = shape.head_dim_qk, d_v = shape.head_dim_v;
  // The row sum up to key j; the first is p itself.
  const auto sum = [&](Rule rule, std::int32_t i, std::int32_t j) {
    if (j > 0) make(rule, "sum", {i, j});
  };
  for (std::int32_t begin = 0; begin < shape.seqlen_q; begin += block) {
    const std::int32_t end = std::min(begin + block, shape.seqlen_q);
    for (std::int32_t i = begin; i < end; ++i) {
      for (std::int32_t l = 0; l < d_k; ++l) make(Rule::load, "q", {i, l});
    }
    for (std::int32_t j = 0; j < keys; ++j) {
      for (std::int32_t l = 0; l < d_k; ++l) {
        make(Rule::load, "k", {j, l});
        for (std::int32_t i = begin; i < end; ++i) {
          make(Rule::compute, "s", {i, j, l});
          if (l > 0) make(Rule::free, "s", {i, j, l - 1});
        }
        make(Rule::free, "k", {j, l});
      }
      for (std::int32_t i = begin; i < end; ++i) {
        make(Rule::compute, "p", {i, j});
        make(Rule::free, "s", {i, j, d_k - 1});
        sum(Rule::compute, i, j);
        // p of the first key is the row sum until the second key is added.
        if (j == 1) make(Rule::free, "p", {i, 0});
        if (j > 1) sum(Rule::free, i, j - 1);
      }
      for (std::int32_t c = 0; c < d_v; ++c) {
        make(Rule::load, "v", {j, c});
        for (std::int32_t i = begin; i < end; ++i) {
          make(Rule::compute, "o", {i, j, c});
          if (j > 0) make(Rule::free, "o", {i, j - 1, c});
        }
        make(Rule::free, "v", {j, c});
      }
      for (std::int32_t i = begin; i < end; ++i) {
        if (j > 0) make(Rule::free, "p", {i, j});
      }
    }
    for (std::int32_t i = begin; i < end; ++i) {
      for (std::int32_t c = 0; c < d_v; ++c) {
        make(Rule::compute, "O", {i, c});
        make(Rule::free, "o", {i, keys - 1, c});
        make(Rule::store, "O", {i, c});
        make(Rule::free, "O", {i, c});
      }
      if (keys > 1) {
        make(Rule::free, "sum", {i, keys - 1});
      } else {
        make(Rule::free, "p", {i, 0});
      }
      for (std::int32_t l = 0; l < d_k; ++l) make(Rule::free, "q", {i, l});
    }
  }
  return moves;
}

}  // namespace attest::io::testing
