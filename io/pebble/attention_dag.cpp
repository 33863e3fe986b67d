#include "io/pebble/attention_dag.hpp"

#include <utility>

#include "core/error.hpp"

namespace attest::io {
namespace {

using Indices = std::vector<std::int32_t>;

// The inputs of one matrix.
std::vector<std::vector<Vertex>> matrix(Dag& dag, const char* symbol, std::int32_t rows,
                                        std::int32_t columns) {
  std::vector<std::vector<Vertex>> words(static_cast<std::size_t>(rows));
  for (std::int32_t row = 0; row < rows; ++row) {
    for (std::int32_t column = 0; column < columns; ++column) {
      words[static_cast<std::size_t>(row)].push_back(dag.input(symbol, {row, column}));
    }
  }
  return words;
}

// A word formed from operands and, unless it is the first of its chain, from the one before it.
Vertex chained(Dag& dag, const char* symbol, Indices indices, std::vector<Vertex> operands,
               const std::vector<Vertex>& chain) {
  if (!chain.empty()) operands.push_back(chain.back());
  return dag.formed(symbol, std::move(indices), std::move(operands));
}

// sum_l a_l b_l as a chain; the last word may have a symbol of its own.
Vertex inner_product(Dag& dag, const char* symbol, const Indices& pair,
                     const std::vector<Vertex>& a, const std::vector<Vertex>& b) {
  std::vector<Vertex> chain;
  for (std::size_t l = 0; l < a.size(); ++l) {
    Indices indices = pair;
    indices.push_back(static_cast<std::int32_t>(l));
    chain.push_back(chained(dag, symbol, indices, {a[l], b[l]}, chain));
  }
  return chain.back();
}

class ForwardBuilder {
 public:
  ForwardBuilder(const AttentionShape& shape, const ForwardDagOptions& options)
      : shape_(shape),
        options_(options),
        q_(matrix(dag_, "q", shape.seqlen_q, shape.head_dim_qk)),
        k_(matrix(dag_, "k", shape.seqlen_k, shape.head_dim_qk)),
        v_(matrix(dag_, "v", shape.seqlen_k, shape.head_dim_v)) {}

  Dag build() && {
    for (std::int32_t i = 0; i < shape_.seqlen_q; ++i) {
      const std::vector<std::int32_t> keys = shape_.keys(i);
      if (keys.empty()) continue;
      if (keys.size() == 1 && options_.one_key == OneKeyRow::copied) {
        for (std::int32_t c = 0; c < shape_.head_dim_v; ++c) {
          dag_.output(dag_.formed("O", {i, c}, {value(keys[0], c)}));
        }
      } else {
        row(i, keys);
      }
    }
    return std::move(dag_);
  }

 private:
  // The sums of a row as they stand.
  struct Row {
    Vertex maximum = -1, sum = -1;
    std::vector<Vertex> output;  // one for every column, -1 before the first key
  };

  Vertex value(std::int32_t j, std::int32_t c) const {
    return v_[static_cast<std::size_t>(j)][static_cast<std::size_t>(c)];
  }

  Vertex score(std::int32_t i, std::int32_t j) {
    return inner_product(dag_, "s", {i, j}, q_[static_cast<std::size_t>(i)],
                         k_[static_cast<std::size_t>(j)]);
  }

  void row(std::int32_t i, const std::vector<std::int32_t>& keys) {
    Row row;
    row.output.assign(static_cast<std::size_t>(shape_.head_dim_v), -1);
    // One tile of all keys is the maximum over the whole row.
    const auto tile =
        options_.softmax == Softmax::running_maximum ? options_.block_k : shape_.seqlen_k;
    std::size_t begin = 0;
    while (begin < keys.size()) {
      std::size_t end = begin;
      while (end < keys.size() && keys[end] / tile == keys[begin] / tile) ++end;
      add_tile(i,
               {keys.begin() + static_cast<std::ptrdiff_t>(begin),
                keys.begin() + static_cast<std::ptrdiff_t>(end)},
               row);
      begin = end;
    }
    for (std::int32_t c = 0; c < shape_.head_dim_v; ++c) {
      dag_.output(dag_.formed("O", {i, c}, {row.output[static_cast<std::size_t>(c)], row.sum}));
    }
    if (options_.lse == LseWord::output) {
      std::vector<Vertex> operands{row.sum};
      if (row.maximum >= 0) operands.push_back(row.maximum);
      dag_.output(dag_.formed("lse", {i}, operands));
    }
  }

  void add_tile(std::int32_t i, const std::vector<std::int32_t>& keys, Row& row) {
    std::vector<Vertex> scores;
    scores.reserve(keys.size());
    for (const std::int32_t j : keys) scores.push_back(score(i, j));
    if (options_.softmax == Softmax::final_maximum ||
        options_.softmax == Softmax::running_maximum) {
      shift(i, keys, scores, row);
    }
    for (std::size_t index = 0; index < keys.size(); ++index) {
      const std::int32_t j = keys[index];
      Vertex p = scores[index];
      if (options_.softmax == Softmax::unshifted) p = dag_.formed("p", {i, j}, {p});
      if (row.maximum >= 0) p = dag_.formed("p", {i, j}, {p, row.maximum});
      add_key(i, j, p, row);
    }
  }

  // The maximum with the tile's scores, and the sums so far rescaled to it.
  void shift(std::int32_t i, const std::vector<std::int32_t>& keys,
             const std::vector<Vertex>& scores, Row& row) {
    const Vertex before = row.maximum;
    for (std::size_t index = 0; index < keys.size(); ++index) {
      // The first score is the maximum of itself.
      row.maximum = row.maximum < 0
                        ? scores[index]
                        : dag_.formed("m", {i, keys[index]}, {row.maximum, scores[index]});
    }
    if (before < 0) return;
    row.sum = dag_.formed("rescaled_sum", {i, keys[0]}, {row.sum, before, row.maximum});
    for (std::int32_t c = 0; c < shape_.head_dim_v; ++c) {
      Vertex& output = row.output[static_cast<std::size_t>(c)];
      output = dag_.formed("rescaled_o", {i, keys[0], c}, {output, before, row.maximum});
    }
  }

  void add_key(std::int32_t i, std::int32_t j, Vertex p, Row& row) {
    // The first p is the sum of itself.
    row.sum = row.sum < 0 ? p : dag_.formed("sum", {i, j}, {p, row.sum});
    for (std::int32_t c = 0; c < shape_.head_dim_v; ++c) {
      Vertex& output = row.output[static_cast<std::size_t>(c)];
      std::vector<Vertex> operands{p, value(j, c)};
      if (output >= 0) operands.push_back(output);
      output = dag_.formed("o", {i, j, c}, operands);
    }
  }

  const AttentionShape& shape_;
  const ForwardDagOptions& options_;
  Dag dag_;
  std::vector<std::vector<Vertex>> q_, k_, v_;
};

// Every chain of a matrix of outputs so far.
using Chains = std::vector<std::vector<std::vector<Vertex>>>;

Chains chains(std::int32_t rows, std::int32_t columns) {
  return Chains(static_cast<std::size_t>(rows),
                std::vector<std::vector<Vertex>>(static_cast<std::size_t>(columns)));
}

void output_ends(Dag& dag, const Chains& all) {
  for (const auto& row : all) {
    for (const auto& chain : row) {
      if (!chain.empty()) dag.output(chain.back());
    }
  }
}

class BackwardBuilder {
 public:
  BackwardBuilder(const AttentionShape& shape, Statistics statistics)
      : shape_(shape),
        statistics_(statistics),
        q_(matrix(dag_, "q", shape.seqlen_q, shape.head_dim_qk)),
        k_(matrix(dag_, "k", shape.seqlen_k, shape.head_dim_qk)),
        v_(matrix(dag_, "v", shape.seqlen_k, shape.head_dim_v)),
        target_(matrix(dag_, "dO", shape.seqlen_q, shape.head_dim_v)),
        d_q_(chains(shape.seqlen_q, shape.head_dim_qk)),
        d_k_(chains(shape.seqlen_k, shape.head_dim_qk)),
        d_v_(chains(shape.seqlen_k, shape.head_dim_v)) {}

  Dag build() && {
    for (std::int32_t i = 0; i < shape_.seqlen_q; ++i) {
      const std::vector<std::int32_t> keys = shape_.keys(i);
      if (keys.size() == 1) copy_target(i, keys[0]);
      if (keys.size() >= 2) row(i, keys);
    }
    output_ends(dag_, d_q_);
    output_ends(dag_, d_k_);
    output_ends(dag_, d_v_);
    return std::move(dag_);
  }

 private:
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  // P = 1: the row adds dO to dV.
  void copy_target(std::int32_t i, std::int32_t j) {
    for (std::int32_t c = 0; c < shape_.head_dim_v; ++c) {
      auto& chain = d_v_[at(j)][at(c)];
      chain.push_back(chained(dag_, "dV", {i, j, c}, {target_[at(i)][at(c)]}, chain));
    }
  }

  void row(std::int32_t i, const std::vector<std::int32_t>& keys) {
    std::vector<Vertex> p, dp;
    for (const std::int32_t j : keys) {
      p.push_back(inner_product(dag_, "s", {i, j}, q_[at(i)], k_[at(j)]));
      dp.push_back(inner_product(dag_, "dp", {i, j}, target_[at(i)], v_[at(j)]));
    }
    const Vertex delta =
        statistics_ == Statistics::given ? given(i, keys, p) : recomputed(i, keys, p, dp);
    for (std::size_t index = 0; index < keys.size(); ++index) {
      const std::int32_t j = keys[index];
      const Vertex ds = dag_.formed("ds", {i, j}, {p[index], dp[index], delta});
      for (std::int32_t l = 0; l < shape_.head_dim_qk; ++l) {
        extend(d_q_[at(i)][at(l)], "dQ", {i, j, l}, {ds, k_[at(j)][at(l)]});
        extend(d_k_[at(j)][at(l)], "dK", {i, j, l}, {ds, q_[at(i)][at(l)]});
      }
      for (std::int32_t c = 0; c < shape_.head_dim_v; ++c) {
        extend(d_v_[at(j)][at(c)], "dV", {i, j, c}, {p[index], target_[at(i)][at(c)]});
      }
    }
  }

  void extend(std::vector<Vertex>& chain, const char* symbol, Indices indices,
              std::vector<Vertex> operands) {
    chain.push_back(chained(dag_, symbol, std::move(indices), std::move(operands), chain));
  }

  // Turns scores into weights with LSE; delta from dO and O.
  Vertex given(std::int32_t i, const std::vector<std::int32_t>& keys, std::vector<Vertex>& p) {
    const Vertex lse = dag_.input("lse", {i});
    for (std::size_t index = 0; index < keys.size(); ++index) {
      p[index] = dag_.formed("p", {i, keys[index]}, {p[index], lse});
    }
    std::vector<Vertex> chain;
    for (std::int32_t c = 0; c < shape_.head_dim_v; ++c) {
      const Vertex output = dag_.input("O", {i, c});
      chain.push_back(chained(dag_, "delta", {i, c}, {target_[at(i)][at(c)], output}, chain));
    }
    return chain.back();
  }

  // Turns scores into weights with the row's own sum; delta from P and dP.
  Vertex recomputed(std::int32_t i, const std::vector<std::int32_t>& keys, std::vector<Vertex>& p,
                    const std::vector<Vertex>& dp) {
    std::vector<Vertex> sum{p[0]};
    for (std::size_t index = 1; index < keys.size(); ++index) {
      sum.push_back(chained(dag_, "sum", {i, keys[index]}, {p[index]}, sum));
    }
    std::vector<Vertex> delta;
    for (std::size_t index = 0; index < keys.size(); ++index) {
      p[index] = dag_.formed("p", {i, keys[index]}, {p[index], sum.back()});
      delta.push_back(chained(dag_, "delta", {i, keys[index]}, {p[index], dp[index]}, delta));
    }
    return delta.back();
  }

  const AttentionShape& shape_;
  const Statistics statistics_;
  Dag dag_;
  std::vector<std::vector<Vertex>> q_, k_, v_, target_;
  Chains d_q_, d_k_, d_v_;
};

}  // namespace

std::vector<std::int32_t> AttentionShape::keys(std::int32_t i) const {
  std::vector<std::int32_t> seen;
  for (std::int32_t j = 0; j < seqlen_k; ++j) {
    if (sees(i, j)) seen.push_back(j);
  }
  return seen;
}

void AttentionShape::validate() const {
  for (const std::int32_t size : {seqlen_q, seqlen_k, head_dim_qk, head_dim_v}) {
    if (size < 1) {
      throw InvalidProblem("attention shape: a size is " + std::to_string(size) +
                           "; it must be at least 1");
    }
  }
  const auto pairs = static_cast<std::size_t>(seqlen_q) * static_cast<std::size_t>(seqlen_k);
  if (!visible.empty() && visible.size() != pairs) {
    throw InvalidProblem("attention shape: the mask has " + std::to_string(visible.size()) +
                         " entries; it needs seqlen_q * seqlen_k = " + std::to_string(pairs));
  }
}

Dag forward_dag(const AttentionShape& shape, const ForwardDagOptions& options) {
  shape.validate();
  if (options.block_k < 1) {
    throw InvalidProblem("block_k is " + std::to_string(options.block_k) +
                         "; it must be at least 1");
  }
  return ForwardBuilder(shape, options).build();
}

Dag backward_dag(const AttentionShape& shape, Statistics statistics) {
  shape.validate();
  return BackwardBuilder(shape, statistics).build();
}

}  // namespace attest::io
