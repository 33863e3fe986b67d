#include "schedules/testing/dags.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace attest::schedules::testing {
namespace {

using io::Dag;
using io::Vertex;
using Row = std::vector<Vertex>;
using Matrix = std::vector<Row>;
using Index = std::vector<std::int32_t>;

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

Matrix inputs(Dag& dag, const char* symbol, std::int32_t rows, std::int32_t columns) {
  Matrix words(at(rows));
  for (std::int32_t i = 0; i < rows; ++i) {
    for (std::int32_t j = 0; j < columns; ++j) words[at(i)].push_back(dag.input(symbol, {i, j}));
  }
  return words;
}

// The word with the operands and, if there is one, the word before it.
void extend(Dag& dag, Vertex& chain, const std::string& symbol, Index index, Row operands) {
  if (chain >= 0) operands.push_back(chain);
  chain = dag.formed(symbol, std::move(index), std::move(operands));
}

// As extend, but the first term is the chain itself.
void join(Dag& dag, Vertex& chain, const std::string& symbol, Index index, Vertex term) {
  chain = chain < 0 ? term : dag.formed(symbol, std::move(index), {chain, term});
}

// sum over l of a(l) b(l) as a chain with the index appended.
Vertex inner(Dag& dag, const std::string& symbol, const Index& index, std::int32_t count,
             const std::function<Row(std::int32_t)>& terms) {
  Vertex chain = -1;
  for (std::int32_t l = 0; l < count; ++l) {
    Index full = index;
    full.push_back(l);
    extend(dag, chain, symbol, full, terms(l));
  }
  return chain;
}

// a (rows, n) b^T with b (columns, n).
Matrix scores(Dag& dag, const std::string& symbol, const Matrix& a, const Matrix& b) {
  Matrix all(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      const auto n = static_cast<std::int32_t>(b[j].size());
      all[i].push_back(inner(dag, symbol,
                             {static_cast<std::int32_t>(i), static_cast<std::int32_t>(j)}, n,
                             [&](std::int32_t l) {
                               return Row{a[i][at(l)], b[j][at(l)]};
                             }));
    }
  }
  return all;
}

// Maximum and sum of a row over tiles, and outputs that are rescaled with them.
struct Running {
  Vertex m = -1, sum = -1;
  Row o;  // empty: no outputs
  Row weights;
};

// Adds keys begin .. end-1: m, rescaled sum and o, weights e[i,j], sum; o only with values.
void add_tile(Dag& dag, Running& run, std::int32_t i, std::int32_t begin, std::int32_t end,
              const Row& s, const Matrix* values, const std::string& mark = "") {
  const Vertex before = run.m;
  for (std::int32_t j = begin; j < end; ++j) join(dag, run.m, "m" + mark, {i, j}, s[at(j)]);
  if (run.sum >= 0)
    run.sum = dag.formed("rescaled_sum" + mark, {i, begin}, {run.sum, before, run.m});
  for (std::size_t c = 0; c < run.o.size(); ++c) {
    if (run.o[c] < 0) continue;
    run.o[c] = dag.formed("rescaled_o" + mark, {i, begin, static_cast<std::int32_t>(c)},
                          {run.o[c], before, run.m});
  }
  for (std::int32_t j = begin; j < end; ++j) {
    run.weights[at(j)] = dag.formed("e" + mark, {i, j}, {s[at(j)], run.m});
    join(dag, run.sum, "sum" + mark, {i, j}, run.weights[at(j)]);
  }
  if (values == nullptr) return;
  for (std::int32_t j = begin; j < end; ++j) {
    for (std::size_t c = 0; c < run.o.size(); ++c) {
      extend(dag, run.o[c], "o" + mark, {i, j, static_cast<std::int32_t>(c)},
             {run.weights[at(j)], (*values)[at(j)][c]});
    }
  }
}

Running running(std::size_t keys, std::size_t columns) {
  return {-1, -1, Row(columns, -1), Row(keys, -1)};
}

void output_all(Dag& dag, const Row& row) {
  for (const Vertex vertex : row) dag.output(vertex);
}

// o[i,j,c] <- p, v over all keys.
Row weigh(Dag& dag, std::int32_t i, const Row& p, const Matrix& v) {
  Row o(v[0].size(), -1);
  for (std::size_t j = 0; j < p.size(); ++j) {
    for (std::size_t c = 0; c < o.size(); ++c) {
      extend(dag, o[c], "o", {i, static_cast<std::int32_t>(j), static_cast<std::int32_t>(c)},
             {p[j], v[j][c]});
    }
  }
  return o;
}

// The keys that a query sees, one after another, and where those of each tile of `block` keys lie.
struct VisibleKeys {
  std::vector<std::int32_t> keys;
  std::vector<std::pair<std::int32_t, std::int32_t>> tiles;  // begin, end among `keys`

  VisibleKeys(std::vector<std::int32_t> visible, std::int32_t block) : keys(std::move(visible)) {
    const auto count = static_cast<std::int32_t>(keys.size());
    for (std::int32_t begin = 0, end = 0; begin < count; begin = end) {
      while (end < count && keys[at(end)] / block == keys[at(begin)] / block) ++end;
      tiles.emplace_back(begin, end);
    }
  }
};

Matrix rows_of(const Matrix& matrix, const std::vector<std::int32_t>& rows) {
  Matrix chosen;
  for (const std::int32_t row : rows) chosen.push_back(matrix[at(row)]);
  return chosen;
}

// One row of Normalization::tiles.
Row normalized_tiles(Dag& dag, std::int32_t i, const Row& s, const Matrix& v,
                     const VisibleKeys& visible) {
  Running run = running(s.size(), 0);
  Row o(v[0].size(), -1);
  for (const auto& [begin, end] : visible.tiles) {
    const Vertex m = run.m, sum = run.sum;
    Vertex next = run.m;
    for (std::int32_t j = begin; j < end; ++j) join(dag, next, "m", {i, j}, s[at(j)]);
    for (std::size_t c = 0; c < o.size() && sum >= 0; ++c) {
      o[c] =
          dag.formed("undivided", {i, begin, static_cast<std::int32_t>(c)}, {o[c], sum, m, next});
    }
    run.m = next;
    if (sum >= 0) run.sum = dag.formed("rescaled_sum", {i, begin}, {sum, m, next});
    for (std::int32_t j = begin; j < end; ++j) {
      run.weights[at(j)] = dag.formed("e", {i, j}, {s[at(j)], run.m});
      join(dag, run.sum, "sum", {i, j}, run.weights[at(j)]);
    }
    for (std::size_t c = 0; c < o.size() && sum >= 0; ++c) {
      o[c] = dag.formed("divided", {i, begin, static_cast<std::int32_t>(c)}, {o[c], run.sum});
    }
    for (std::int32_t j = begin; j < end; ++j) {
      const Vertex p = dag.formed("p", {i, j}, {run.weights[at(j)], run.sum});
      for (std::size_t c = 0; c < o.size(); ++c) {
        extend(dag, o[c], "o", {i, j, static_cast<std::int32_t>(c)}, {p, v[at(j)][c]});
      }
    }
  }
  return o;
}

// lse of a row from sums over tiles, outputs aside.
Vertex row_lse(Dag& dag, std::int32_t i, const Row& s, const VisibleKeys& visible) {
  Running run = running(s.size(), 0);
  for (const auto& [begin, end] : visible.tiles) add_tile(dag, run, i, begin, end, s, nullptr);
  return dag.formed("lse", {i}, {run.sum, run.m});
}

// The sum of a row of weights, word by word.
Vertex row_sum(Dag& dag, std::int32_t i, const Row& p) {
  Vertex sum = -1;
  for (std::size_t j = 0; j < p.size(); ++j) {
    join(dag, sum, "rowsum", {i, static_cast<std::int32_t>(j)}, p[j]);
  }
  return sum;
}

Row through(Dag& dag, const std::string& symbol, std::int32_t i, const Row& s, Vertex operand) {
  Row p;
  for (std::size_t j = 0; j < s.size(); ++j) {
    p.push_back(dag.formed(symbol, {i, static_cast<std::int32_t>(j)}, {s[j], operand}));
  }
  return p;
}

}  // namespace

Dag normalized_forward(const io::AttentionShape& shape, Normalization where, std::int32_t block) {
  Dag dag;
  const Matrix q = inputs(dag, "q", shape.seqlen_q, shape.head_dim_qk);
  const Matrix k = inputs(dag, "k", shape.seqlen_k, shape.head_dim_qk);
  const Matrix v = inputs(dag, "v", shape.seqlen_k, shape.head_dim_v);
  for (std::int32_t i = 0; i < shape.seqlen_q; ++i) {
    const VisibleKeys visible(shape.keys(i), block);
    if (visible.keys.empty()) continue;
    const Matrix values = rows_of(v, visible.keys);
    Row row;
    for (const std::int32_t j : visible.keys) {
      row.push_back(inner(dag, "s", {i, j}, shape.head_dim_qk, [&](std::int32_t l) {
        return Row{q[at(i)][at(l)], k[at(j)][at(l)]};
      }));
    }
    if (where == Normalization::tiles) {
      output_all(dag, normalized_tiles(dag, i, row, values, visible));
    } else if (where == Normalization::stored) {
      const Vertex lse = row_lse(dag, i, row, visible);
      dag.output(lse);
      const Row p = through(dag, "p", i, row, lse);
      output_all(dag, through(dag, "O", i, weigh(dag, i, p, values), row_sum(dag, i, p)));
    } else {
      Running run = running(row.size(), 0);
      add_tile(dag, run, i, 0, static_cast<std::int32_t>(row.size()), row, nullptr);
      output_all(dag, weigh(dag, i, through(dag, "p", i, run.weights, run.sum), values));
    }
  }
  return dag;
}

Dag factored_forward(const io::AttentionShape& shape, const std::vector<std::int32_t>& blocks) {
  Dag dag;
  const Matrix q = inputs(dag, "q", shape.seqlen_q, shape.head_dim_qk);
  const Matrix k = inputs(dag, "k", shape.seqlen_k, shape.head_dim_qk);
  const Matrix v = inputs(dag, "v", shape.seqlen_k, shape.head_dim_v);
  const Matrix s = scores(dag, "s", q, k);
  for (std::int32_t i = 0; i < shape.seqlen_q; ++i) {
    Vertex m = -1, sum = -1;
    Row o(at(shape.head_dim_v), -1);
    const std::vector<std::int32_t> keys = shape.keys(i);
    if (keys.empty()) continue;
    const std::int32_t count = static_cast<std::int32_t>(keys.size());
    for (std::int32_t begin = 0; begin < count; begin += blocks[at(i)]) {
      const std::span piece{keys.begin() + begin,
                            keys.begin() + std::min(begin + blocks[at(i)], count)};
      const Vertex before = m;
      for (const std::int32_t j : piece) join(dag, m, "m", {i, j}, s[at(i)][at(j)]);
      if (before >= 0) {
        const Vertex factor = dag.formed("f", {i, begin}, {before, m});
        sum = dag.formed("rescaled_sum", {i, begin}, {sum, factor});
        for (std::int32_t c = 0; c < shape.head_dim_v; ++c) {
          o[at(c)] = dag.formed("rescaled_o", {i, begin, c}, {o[at(c)], factor});
        }
      }
      for (const std::int32_t j : piece) {
        const Vertex weight = dag.formed("e", {i, j}, {s[at(i)][at(j)], m});
        join(dag, sum, "sum", {i, j}, weight);
        for (std::int32_t c = 0; c < shape.head_dim_v; ++c) {
          extend(dag, o[at(c)], "o", {i, j, c}, {weight, v[at(j)][at(c)]});
        }
      }
    }
    dag.output(dag.formed("lse", {i}, {sum, m}));
    for (std::int32_t c = 0; c < shape.head_dim_v; ++c) {
      dag.output(dag.formed("O", {i, c}, {o[at(c)], sum}));
    }
  }
  return dag;
}

Dag split_forward(const io::AttentionShape& shape, std::int32_t block, std::int32_t part) {
  Dag dag;
  const Matrix q = inputs(dag, "q", shape.seqlen_q, shape.head_dim_qk);
  const Matrix k = inputs(dag, "k", shape.seqlen_k, shape.head_dim_qk);
  const Matrix v = inputs(dag, "v", shape.seqlen_k, shape.head_dim_v);
  const Matrix s = scores(dag, "s", q, k);
  for (std::int32_t i = 0; i < shape.seqlen_q; ++i) {
    Vertex m = -1, sum = -1;
    Row o(at(shape.head_dim_v), -1);
    for (std::int32_t first = 0; first < shape.seqlen_k; first += part) {
      const std::int32_t last = std::min(first + part, shape.seqlen_k);
      Running run = running(at(shape.seqlen_k), at(shape.head_dim_v));
      for (std::int32_t begin = first; begin < last; begin += block) {
        add_tile(dag, run, i, begin, std::min(begin + block, last), s[at(i)], &v, "_of_part");
      }
      Row O;
      for (std::int32_t c = 0; c < shape.head_dim_v; ++c) {
        O.push_back(dag.formed("O_of_part", {i, first, c}, {run.o[at(c)], run.sum}));
      }
      const Vertex lse = dag.formed("lse_of_part", {i, first}, {run.sum, run.m}), before = m;
      join(dag, m, "m", {i, first}, lse);
      if (sum >= 0) sum = dag.formed("rescaled_sum", {i, first}, {sum, before, m});
      const Vertex weight = dag.formed("weight", {i, first}, {lse, m});
      join(dag, sum, "sum", {i, first}, weight);
      for (std::int32_t c = 0; c < shape.head_dim_v; ++c) {
        Vertex& word = o[at(c)];
        if (word >= 0) word = dag.formed("rescaled_o", {i, first, c}, {word, before, m});
        extend(dag, word, "o", {i, first, c}, {O[at(c)], weight});
      }
    }
    for (std::int32_t c = 0; c < shape.head_dim_v; ++c) {
      dag.output(dag.formed("O", {i, c}, {o[at(c)], sum}));
    }
    dag.output(dag.formed("lse", {i}, {m, sum}));
  }
  return dag;
}

Dag saved_backward(const io::AttentionShape& shape, Saved saved) {
  Dag dag;
  const std::int32_t q_rows = shape.seqlen_q, k_rows = shape.seqlen_k, dk = shape.head_dim_qk,
                     dv = shape.head_dim_v;
  const Matrix q = inputs(dag, "q", q_rows, dk), k = inputs(dag, "k", k_rows, dk);
  const Matrix v = inputs(dag, "v", k_rows, dv), g = inputs(dag, "dO", q_rows, dv);
  const Matrix dp = scores(dag, "dp", g, v);
  Matrix p, s;
  if (saved == Saved::weights) p = inputs(dag, "p", q_rows, k_rows);
  if (saved == Saved::max_sums) s = scores(dag, "s", q, k);
  Matrix dQ(at(q_rows), Row(at(dk), -1)), dK(at(k_rows), Row(at(dk), -1)),
      dV(at(k_rows), Row(at(dv), -1));
  for (std::int32_t i = 0; i < q_rows; ++i) {
    Vertex delta = -1;
    if (saved == Saved::weights) {
      for (std::int32_t j = 0; j < k_rows; ++j) {
        extend(dag, delta, "delta", {i, j}, {dp[at(i)][at(j)], p[at(i)][at(j)]});
      }
    } else {
      const Vertex m = dag.input("m", {i}), sum = dag.input("sum", {i});
      p.push_back(through(dag, "p", i, through(dag, "e", i, s[at(i)], m), sum));
      for (std::int32_t c = 0; c < dv; ++c) {
        extend(dag, delta, "delta", {i, c}, {g[at(i)][at(c)], dag.input("O", {i, c})});
      }
    }
    for (std::int32_t j = 0; j < k_rows; ++j) {
      const Vertex weight = p[at(i)][at(j)];
      const Vertex ds = dag.formed("ds", {i, j}, {weight, dp[at(i)][at(j)], delta});
      for (std::int32_t l = 0; l < dk; ++l) {
        extend(dag, dQ[at(i)][at(l)], "dQ", {i, j, l}, {ds, k[at(j)][at(l)]});
        extend(dag, dK[at(j)][at(l)], "dK", {i, j, l}, {ds, q[at(i)][at(l)]});
      }
      for (std::int32_t c = 0; c < dv; ++c) {
        extend(dag, dV[at(j)][at(c)], "dV", {i, j, c}, {weight, g[at(i)][at(c)]});
      }
    }
  }
  for (const Matrix* gradient : {&dQ, &dK, &dV}) {
    for (const Row& row : *gradient) output_all(dag, row);
  }
  return dag;
}

Dag loss_dag(std::int32_t n, std::int32_t d, LossOrder order, std::int32_t block) {
  Dag dag;
  const Matrix A1 = inputs(dag, "A1", n, d), A2 = inputs(dag, "A2", n, d),
               A3 = inputs(dag, "A3", n, d), E = inputs(dag, "E", n, d), X = inputs(dag, "X", d, d),
               Y = inputs(dag, "Y", d, d);
  const auto transposed = [d](const Matrix& a) {
    Matrix b(a.size(), Row(at(d)));
    for (std::int32_t i = 0; i < d; ++i) {
      for (std::int32_t j = 0; j < d; ++j) b[at(j)][at(i)] = a[at(i)][at(j)];
    }
    return b;
  };
  const Matrix QX = scores(dag, "QX", A1, transposed(X)), h = scores(dag, "h", A3, transposed(Y));
  const Matrix s = scores(dag, "s", QX, A2);
  Matrix c, f(at(n));
  Row lse, delta;
  for (std::int32_t i = 0; i < n; ++i) {
    Row fh;
    if (order == LossOrder::stored) {
      Index keys(at(n));
      std::iota(keys.begin(), keys.end(), 0);
      lse.push_back(row_lse(dag, i, s[at(i)], VisibleKeys(std::move(keys), block)));
      f[at(i)] = through(dag, "f", i, s[at(i)], lse.back());
      fh = through(dag, "fh", i, weigh(dag, i, f[at(i)], h), row_sum(dag, i, f[at(i)]));
    } else {
      Running run = running(at(n), at(d));
      for (std::int32_t j = 0; j < n; ++j) add_tile(dag, run, i, j, j + 1, s[at(i)], &h);
      for (std::int32_t l = 0; l < d; ++l) {
        fh.push_back(dag.formed("fh", {i, l}, {run.o[at(l)], run.sum}));
      }
      lse.push_back(dag.formed("lse", {i}, {run.m, run.sum}));
    }
    c.emplace_back();
    Vertex sum = -1;
    for (std::int32_t l = 0; l < d; ++l) {
      c.back().push_back(dag.formed("c", {i, l}, {fh[at(l)], E[at(i)][at(l)]}));
      extend(dag, sum, "delta", {i, l}, {c.back().back(), fh[at(l)]});
    }
    delta.push_back(sum);
  }
  const Matrix y = order == LossOrder::direct ? scores(dag, "y", A2, X) : Matrix();
  const Matrix t = order == LossOrder::direct ? scores(dag, "t", A1, y) : s;
  const Matrix u = scores(dag, "u", c, h);
  Matrix p(at(n)), g(at(d), Row(at(d), -1));
  for (std::int32_t i = 0; i < n; ++i) {
    if (order != LossOrder::stored) f[at(i)] = through(dag, "f", i, t[at(i)], lse[at(i)]);
    for (std::int32_t j = 0; j < n; ++j) {
      p[at(i)].push_back(dag.formed("p", {i, j}, {f[at(i)][at(j)], u[at(i)][at(j)], delta[at(i)]}));
    }
  }
  const auto add_product = [&](std::int32_t step, const Row& left, const Row& right) {
    for (std::int32_t m = 0; m < d; ++m) {
      for (std::int32_t l = 0; l < d; ++l) {
        extend(dag, g[at(m)][at(l)], "g", {m, step, l}, {left[at(m)], right[at(l)]});
      }
    }
  };
  if (order == LossOrder::direct) {
    for (std::int32_t first = 0; first < n; first += block) {
      for (std::int32_t j = 0; j < n; ++j) {
        Row z(at(d), -1);
        for (std::int32_t i = first; i < std::min(first + block, n); ++i) {
          for (std::int32_t m = 0; m < d; ++m) {
            extend(dag, z[at(m)], "z", {j, i, m}, {p[at(i)][at(j)], A1[at(i)][at(m)]});
          }
        }
        add_product(first * n + j, z, A2[at(j)]);
      }
    }
  } else {
    for (std::int32_t i = 0; i < n; ++i) {
      Row W(at(d), -1);
      for (std::int32_t j = 0; j < n; ++j) {
        for (std::int32_t l = 0; l < d; ++l) {
          extend(dag, W[at(l)], "W", {i, j, l}, {p[at(i)][at(j)], A2[at(j)][at(l)]});
        }
      }
      add_product(i, A1[at(i)], W);
    }
  }
  for (const Row& row : g) output_all(dag, row);
  return dag;
}

}  // namespace attest::schedules::testing
