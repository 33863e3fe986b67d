#include "io/pebble/dag.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "io/pebble/attention_dag.hpp"
#include "io/pebble/loss_dag.hpp"

namespace attest::io {
namespace {

// A graph is right when its words, computed one from another by the meaning of their symbols, give
// what the definition gives. Every result below has error below this many roundings.
constexpr double kRoundings = 1 << 20;
constexpr double kUnit = 0x1p-53;

bool agree(double a, double b) { return std::abs(a - b) <= kRoundings * kUnit; }

using Matrix = std::vector<std::vector<double>>;

Matrix random_matrix(std::int32_t rows, std::int32_t columns, Rng& rng) {
  Matrix matrix(static_cast<std::size_t>(rows));
  for (auto& row : matrix) {
    for (std::int32_t column = 0; column < columns; ++column) row.push_back(rng.normal() / 4);
  }
  return matrix;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t l = 0; l < a.size(); ++l) sum += a[l] * b[l];
  return sum;
}

enum class LastScore { plain, exponential };

// The values of all words.
class Values {
 public:
  // Without a shape: the loss gradient.
  Values(const Dag& dag, const std::map<std::string, Matrix>& inputs, std::int32_t score_length,
         LastScore last, const AttentionShape* shape)
      : dag_(dag), score_length_(score_length), last_(last), shape_(shape) {
    for (Vertex vertex = 0; vertex < dag.size(); ++vertex) {
      const VertexName& name = dag.name(vertex);
      if (dag.is_input(vertex)) {
        const Matrix& matrix = inputs.at(name.symbol);
        const auto row = static_cast<std::size_t>(name.indices[0]);
        const auto column = static_cast<std::size_t>(name.indices.size() > 1 ? name.indices[1] : 0);
        values_.push_back(matrix[row][column]);
      } else {
        values_.push_back(formed(name, operands(vertex)));
      }
    }
  }

  double of(const std::string& symbol, std::vector<std::int32_t> indices) const {
    return of(dag_.find(symbol, std::move(indices)));
  }
  double of(Vertex vertex) const { return values_[static_cast<std::size_t>(vertex)]; }

 private:
  std::vector<double> operands(Vertex vertex) const {
    std::vector<double> values;
    for (const Vertex operand : dag_.operands(vertex)) values.push_back(of(operand));
    return values;
  }

  double formed(const VertexName& name, const std::vector<double>& x) const {
    const std::string& symbol = name.symbol;
    const auto chain = [&](std::size_t first) { return x.size() > first ? x[first] : 0; };
    if (symbol == "s" || symbol == "t") {
      const double sum = x[0] * x[1] + chain(2);
      const bool ends = name.indices[2] == score_length_ - 1;
      return ends && last_ == LastScore::exponential ? std::exp(sum) : sum;
    }
    if (symbol == "p") {
      if (x.size() == 4) return x[0] / x[1] * (x[2] - x[3]);  // loss gradient
      if (last_ == LastScore::exponential) return x[0] / x[1];
      return std::exp(x.size() == 2 ? x[0] - x[1] : x[0]);
    }
    if (symbol == "m") return std::max(x[0], x[1]);
    if (symbol.rfind("rescaled", 0) == 0) return x[0] * std::exp(x[1] - x[2]);
    if (symbol == "sum") return x[0] + x[1];
    if (symbol == "O") return x.size() == 1 ? x[0] : x[0] / x[1];
    if (symbol == "lse") return std::log(x[0]) + chain(1);
    if (symbol == "ds") return x[0] * (x[1] - x[2]);
    if (symbol == "dV" && shape_->keys(name.indices[0]).size() == 1) return x[0] + chain(1);
    if (symbol == "c") return x[0] / x[1] - x[2];
    if (symbol == "delta" && shape_ == nullptr) return x[0] * (x[1] / x[2]) + chain(3);
    return x[0] * x[1] + chain(2);  // every other chain of multiply-adds
  }

  const Dag& dag_;
  const std::int32_t score_length_;
  const LastScore last_;
  const AttentionShape* shape_;
  std::vector<double> values_;
};

struct Attention {
  AttentionShape shape;
  Matrix q, k, v, target;
  Matrix p, output;  // by definition
  std::vector<double> lse;

  Attention(const AttentionShape& s, Rng& rng)
      : shape(s),
        q(random_matrix(s.seqlen_q, s.head_dim_qk, rng)),
        k(random_matrix(s.seqlen_k, s.head_dim_qk, rng)),
        v(random_matrix(s.seqlen_k, s.head_dim_v, rng)),
        target(random_matrix(s.seqlen_q, s.head_dim_v, rng)) {
    for (std::size_t i = 0; i < q.size(); ++i) {
      std::vector<double> weights(k.size());
      double sum = 0;
      for (const std::int32_t j : shape.keys(static_cast<std::int32_t>(i))) {
        const auto key = static_cast<std::size_t>(j);
        sum += weights[key] = std::exp(dot(q[i], k[key]));
      }
      std::vector<double> row(v[0].size());
      for (std::size_t j = 0; j < k.size(); ++j) {
        if (sum > 0) weights[j] /= sum;
        for (std::size_t c = 0; c < row.size(); ++c) row[c] += weights[j] * v[j][c];
      }
      p.push_back(weights);
      output.push_back(row);
      lse.push_back(std::log(sum));
    }
  }

  std::map<std::string, Matrix> inputs() const {
    Matrix column;
    for (const double value : lse) column.push_back({value});
    return {{"q", q}, {"k", k}, {"v", v}, {"dO", target}, {"O", output}, {"lse", column}};
  }
};

std::vector<AttentionShape> shapes() {
  return {{2, 2, 1, 1, {}},
          {3, 5, 2, 3, {}},
          {4, 1, 3, 2, {}},
          {3, 3, 2, 2, {1, 0, 0, 1, 1, 0, 1, 1, 1}},
          {3, 4, 1, 2, {0, 0, 0, 0, 0, 1, 0, 1, 1, 1, 0, 1}}};
}

TEST_CASE("the forward graph computes attention", "[io][pebble]") {
  Rng rng(3);
  for (const AttentionShape& shape : shapes()) {
    const Attention attention(shape, rng);
    for (const ForwardDagOptions& options :
         {ForwardDagOptions{},
          ForwardDagOptions{Softmax::unshifted, 1, OneKeyRow::computed, LseWord::output},
          ForwardDagOptions{Softmax::final_maximum, 1, OneKeyRow::computed, LseWord::output},
          ForwardDagOptions{Softmax::running_maximum, 1, OneKeyRow::computed, LseWord::output},
          ForwardDagOptions{Softmax::running_maximum, 2, OneKeyRow::copied, LseWord::none}}) {
      const Dag dag = forward_dag(shape, options);
      const Values values(
          dag, attention.inputs(), shape.head_dim_qk,
          options.softmax == Softmax::folded ? LastScore::exponential : LastScore::plain, &shape);
      std::size_t outputs = 0;
      for (std::int32_t i = 0; i < shape.seqlen_q; ++i) {
        const std::size_t keys = shape.keys(i).size();
        if (keys == 0) continue;
        for (std::int32_t c = 0; c < shape.head_dim_v; ++c, ++outputs) {
          CHECK(agree(values.of("O", {i, c}),
                      attention.output[static_cast<std::size_t>(i)][static_cast<std::size_t>(c)]));
        }
        if (options.lse == LseWord::output) {
          ++outputs;
          CHECK(agree(values.of("lse", {i}), attention.lse[static_cast<std::size_t>(i)]));
        }
      }
      CHECK(dag.outputs().size() == outputs);
    }
  }
}

TEST_CASE("the backward graph computes the gradients", "[io][pebble]") {
  Rng rng(4);
  for (const AttentionShape& shape : shapes()) {
    const Attention a(shape, rng);
    Matrix d_q(a.q.size(), std::vector<double>(a.q[0].size())),
        d_k(a.k.size(), std::vector<double>(a.k[0].size())),
        d_v(a.v.size(), std::vector<double>(a.v[0].size()));
    for (std::size_t i = 0; i < a.q.size(); ++i) {
      for (std::size_t j = 0; j < a.k.size(); ++j) {
        const double ds = a.p[i][j] * (dot(a.target[i], a.v[j]) - dot(a.target[i], a.output[i]));
        for (std::size_t l = 0; l < a.q[0].size(); ++l) {
          d_q[i][l] += ds * a.k[j][l];
          d_k[j][l] += ds * a.q[i][l];
        }
        for (std::size_t c = 0; c < a.v[0].size(); ++c) d_v[j][c] += a.p[i][j] * a.target[i][c];
      }
    }
    // dQ and dK where a row with at least two keys is concerned, dV of every key that is seen.
    std::size_t words = 0;
    std::vector<int> many(a.k.size()), seen(a.k.size());
    for (std::int32_t i = 0; i < shape.seqlen_q; ++i) {
      const std::vector<std::int32_t> keys = shape.keys(i);
      if (keys.size() >= 2) words += a.q[0].size();
      for (const std::int32_t j : keys) {
        seen[static_cast<std::size_t>(j)] = 1;
        if (keys.size() >= 2) many[static_cast<std::size_t>(j)] = 1;
      }
    }
    for (std::size_t j = 0; j < many.size(); ++j) {
      words += static_cast<std::size_t>(many[j]) * a.k[0].size();
      words += static_cast<std::size_t>(seen[j]) * a.v[0].size();
    }
    for (const Statistics statistics : {Statistics::given, Statistics::recomputed}) {
      const Dag dag = backward_dag(shape, statistics);
      const Values values(
          dag, a.inputs(), shape.head_dim_qk,
          statistics == Statistics::given ? LastScore::plain : LastScore::exponential, &shape);
      for (const Vertex output : dag.outputs()) {
        const VertexName& name = dag.name(output);
        const auto i = static_cast<std::size_t>(name.indices[0]);
        const auto j = static_cast<std::size_t>(name.indices[1]);
        const auto l = static_cast<std::size_t>(name.indices[2]);
        INFO(name.to_string());
        const double expected = name.symbol == "dQ"   ? d_q[i][l]
                                : name.symbol == "dK" ? d_k[j][l]
                                                      : d_v[j][l];
        CHECK(agree(values.of(output), expected));
      }
      CHECK(dag.outputs().size() == words);
    }
  }
}

TEST_CASE("the loss graph computes the gradient", "[io][pebble]") {
  Rng rng(5);
  for (const std::int32_t n : {1, 2, 3}) {
    for (const std::int32_t d : {1, 2, 3}) {
      std::map<std::string, Matrix> in;
      for (const char* symbol : {"A1", "A2", "A3", "E"}) in[symbol] = random_matrix(n, d, rng);
      for (const char* symbol : {"X", "Y"}) in[symbol] = random_matrix(d, d, rng);
      const auto rows = static_cast<std::size_t>(n), columns = static_cast<std::size_t>(d);
      Matrix h(rows, std::vector<double>(columns)), gradient(columns, std::vector<double>(columns));
      for (std::size_t j = 0; j < rows; ++j) {
        for (std::size_t c = 0; c < columns; ++c) {
          for (std::size_t m = 0; m < columns; ++m) h[j][c] += in["A3"][j][m] * in["Y"][m][c];
        }
      }
      for (std::size_t i = 0; i < rows; ++i) {
        std::vector<double> f(rows), c(columns);
        double sum = 0;
        for (std::size_t j = 0; j < rows; ++j) {
          double score = 0;
          for (std::size_t m = 0; m < columns; ++m) {
            score += in["A1"][i][m] * dot(in["X"][m], in["A2"][j]);
          }
          sum += f[j] = std::exp(score);
        }
        for (std::size_t j = 0; j < rows; ++j) {
          f[j] /= sum;
          for (std::size_t l = 0; l < columns; ++l) c[l] += f[j] * h[j][l];
        }
        const std::vector<double> fh = c;
        for (std::size_t l = 0; l < columns; ++l) c[l] -= in["E"][i][l];
        for (std::size_t j = 0; j < rows; ++j) {
          const double p = f[j] * (dot(c, h[j]) - dot(c, fh));
          for (std::size_t m = 0; m < columns; ++m) {
            for (std::size_t l = 0; l < columns; ++l) {
              gradient[m][l] += in["A1"][i][m] * p * in["A2"][j][l];
            }
          }
        }
      }
      for (const LossProduct product : {LossProduct::through_w, LossProduct::direct}) {
        const Dag dag = loss_gradient_dag(n, d, product);
        const Values values(dag, in, d, LastScore::exponential, nullptr);
        CHECK(dag.outputs().size() == columns * columns);
        for (const Vertex output : dag.outputs()) {
          const VertexName& name = dag.name(output);
          CHECK(agree(values.of(output), gradient[static_cast<std::size_t>(name.indices[0])]
                                                 [static_cast<std::size_t>(name.indices[2])]));
        }
      }
    }
  }
}

TEST_CASE("names of words", "[io][pebble]") {
  const Dag dag = forward_dag({2, 2, 1, 1, {}}, {});
  CHECK(dag.size() == 18);
  CHECK(dag.name(dag.find("k", {1, 0})).to_string() == "k[1,0]");
  CHECK(dag.operands(dag.find("o", {1, 1, 0})) == std::vector<Vertex>{dag.find("s", {1, 1, 0}),
                                                                      dag.find("v", {1, 0}),
                                                                      dag.find("o", {1, 0, 0})});
  CHECK_THROWS_AS(dag.find("k", {2, 0}), InvalidProblem);
}

TEST_CASE("impossible graphs are refused", "[io][pebble]") {
  CHECK_THROWS_AS(forward_dag({0, 1, 1, 1, {}}, {}), InvalidProblem);
  CHECK_THROWS_AS(forward_dag({2, 2, 1, 1, {1, 1, 1}}, {}), InvalidProblem);
  CHECK_THROWS_AS(forward_dag({2, 2, 1, 1, {}}, {Softmax::running_maximum, 0}), InvalidProblem);
  CHECK_THROWS_AS(backward_dag({1, 1, 0, 1, {}}, Statistics::given), InvalidProblem);
  CHECK_THROWS_AS(loss_gradient_dag(1, 0, LossProduct::direct), InvalidProblem);
  Dag dag;
  const Vertex a = dag.input("a", {0});
  CHECK_THROWS_AS(dag.input("a", {0}), InternalError);
  CHECK_THROWS_AS(dag.formed("b", {0}, {}), InternalError);
  CHECK_THROWS_AS(dag.formed("b", {0}, {a + 1}), InternalError);
}

}  // namespace
}  // namespace attest::io
