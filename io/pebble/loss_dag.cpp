#include "io/pebble/loss_dag.hpp"

#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace attest::io {
namespace {

using Row = std::vector<Vertex>;
using Matrix = std::vector<Row>;

class LossBuilder {
 public:
  LossBuilder(std::int32_t rows, std::int32_t head_dim)
      : rows_(rows),
        head_dim_(head_dim),
        a1_(inputs("A1", rows)),
        a2_(inputs("A2", rows)),
        a3_(inputs("A3", rows)),
        target_(inputs("E", rows)),
        x_(inputs("X", head_dim)),
        y_(inputs("Y", head_dim)) {}

  Dag build(LossProduct product) && {
    const Matrix qx = product_chain("QX", a1_, x_);
    const Matrix h = product_chain("h", a3_, y_);
    const Matrix p = weights(qx, h, product);
    if (product == LossProduct::through_w) {
      through_w(p);
    } else {
      direct(p);
    }
    return std::move(dag_);
  }

 private:
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  Matrix inputs(const char* symbol, std::int32_t rows) {
    Matrix words(at(rows));
    for (std::int32_t row = 0; row < rows; ++row) {
      for (std::int32_t column = 0; column < head_dim_; ++column) {
        words[at(row)].push_back(dag_.input(symbol, {row, column}));
      }
    }
    return words;
  }

  // One more word of a chain, from the operands and the word before.
  void extend(Row& chain, const char* symbol, std::vector<std::int32_t> indices, Row operands) {
    if (!chain.empty()) operands.push_back(chain.back());
    chain.push_back(dag_.formed(symbol, std::move(indices), std::move(operands)));
  }

  // a (rows, d) times b (d, d): chains over the inner index, their last words.
  Matrix product_chain(const char* symbol, const Matrix& a, const Matrix& b) {
    Matrix ends(at(rows_));
    for (std::int32_t i = 0; i < rows_; ++i) {
      for (std::int32_t l = 0; l < head_dim_; ++l) {
        Row chain;
        for (std::int32_t m = 0; m < head_dim_; ++m) {
          extend(chain, symbol, {i, l, m}, {a[at(i)][at(m)], b[at(m)][at(l)]});
        }
        ends[at(i)].push_back(chain.back());
      }
    }
    return ends;
  }

  Vertex score(const char* symbol, std::int32_t i, std::int32_t j, const Row& a, const Row& b) {
    Row chain;
    for (std::int32_t l = 0; l < head_dim_; ++l) {
      extend(chain, symbol, {i, j, l}, {a[at(l)], b[at(l)]});
    }
    return chain.back();
  }

  // p of every pair.
  Matrix weights(const Matrix& qx, const Matrix& h, LossProduct product) {
    Matrix p(at(rows_));
    const Matrix second = product == LossProduct::direct ? keys_through_x() : Matrix();
    for (std::int32_t i = 0; i < rows_; ++i) {
      Row exponentials, sum;
      for (std::int32_t j = 0; j < rows_; ++j) {
        exponentials.push_back(score("s", i, j, qx[at(i)], a2_[at(j)]));
        if (j == 0) {
          sum.push_back(exponentials[0]);
        } else {
          extend(sum, "sum", {i, j}, {exponentials.back()});
        }
      }
      Row c, delta;
      for (std::int32_t column = 0; column < head_dim_; ++column) {
        Row o;
        for (std::int32_t j = 0; j < rows_; ++j) {
          extend(o, "o", {i, j, column}, {exponentials[at(j)], h[at(j)][at(column)]});
        }
        c.push_back(
            dag_.formed("c", {i, column}, {o.back(), sum.back(), target_[at(i)][at(column)]}));
        extend(delta, "delta", {i, column}, {c.back(), o.back(), sum.back()});
      }
      for (std::int32_t j = 0; j < rows_; ++j) {
        const Vertex exponential = product == LossProduct::direct
                                       ? score("t", i, j, a1_[at(i)], second[at(j)])
                                       : exponentials[at(j)];
        const Vertex u = score("u", i, j, c, h[at(j)]);
        p[at(i)].push_back(dag_.formed("p", {i, j}, {exponential, sum.back(), u, delta.back()}));
      }
    }
    return p;
  }

  // y_j = X A2_j, so that a score is A1_i . y_j.
  Matrix keys_through_x() {
    Matrix ends(at(rows_));
    for (std::int32_t j = 0; j < rows_; ++j) {
      for (std::int32_t l = 0; l < head_dim_; ++l) {
        Row chain;
        for (std::int32_t m = 0; m < head_dim_; ++m) {
          extend(chain, "y", {j, l, m}, {x_[at(l)][at(m)], a2_[at(j)][at(m)]});
        }
        ends[at(j)].push_back(chain.back());
      }
    }
    return ends;
  }

  void through_w(const Matrix& p) {
    Matrix w(at(rows_));
    for (std::int32_t i = 0; i < rows_; ++i) {
      for (std::int32_t l = 0; l < head_dim_; ++l) {
        Row chain;
        for (std::int32_t j = 0; j < rows_; ++j) {
          extend(chain, "W", {i, j, l}, {p[at(i)][at(j)], a2_[at(j)][at(l)]});
        }
        w[at(i)].push_back(chain.back());
      }
    }
    gradient(a1_, w);
  }

  void direct(const Matrix& p) {
    Matrix z(at(rows_));
    for (std::int32_t j = 0; j < rows_; ++j) {
      for (std::int32_t m = 0; m < head_dim_; ++m) {
        Row chain;
        for (std::int32_t i = 0; i < rows_; ++i) {
          extend(chain, "z", {j, i, m}, {p[at(i)][at(j)], a1_[at(i)][at(m)]});
        }
        z[at(j)].push_back(chain.back());
      }
    }
    gradient(z, a2_);
  }

  // g = left^T right, summed over rows.
  void gradient(const Matrix& left, const Matrix& right) {
    for (std::int32_t m = 0; m < head_dim_; ++m) {
      for (std::int32_t l = 0; l < head_dim_; ++l) {
        Row chain;
        for (std::int32_t row = 0; row < rows_; ++row) {
          extend(chain, "g", {m, row, l}, {left[at(row)][at(m)], right[at(row)][at(l)]});
        }
        dag_.output(chain.back());
      }
    }
  }

  const std::int32_t rows_, head_dim_;
  Dag dag_;
  Matrix a1_, a2_, a3_, target_, x_, y_;
};

}  // namespace

Dag loss_gradient_dag(std::int32_t rows, std::int32_t head_dim, LossProduct product) {
  if (rows < 1 || head_dim < 1) {
    throw InvalidProblem("loss gradient: n is " + std::to_string(rows) + " and d " +
                         std::to_string(head_dim) + "; both must be at least 1");
  }
  return LossBuilder(rows, head_dim).build(product);
}

}  // namespace attest::io
