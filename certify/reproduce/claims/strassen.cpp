#include "certify/reproduce/claims/strassen.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "core/error.hpp"

namespace attest::certify {
namespace {

// A block of a row-major matrix; without values in a dry run.
struct Block {
  double* values = nullptr;
  std::int64_t rows = 0, columns = 0, stride = 0;

  std::int64_t words() const { return rows * columns; }
  double& at(std::int64_t i, std::int64_t j) const { return values[i * stride + j]; }
  Block part(std::int64_t row_half, std::int64_t column_half) const {
    const std::int64_t r = rows / 2, c = columns / 2;
    return {values == nullptr ? nullptr : values + row_half * r * stride + column_half * c, r, c,
            stride};
  }
  Block half_of_rows(std::int64_t which) const {
    const std::int64_t r = rows / 2;
    return {values == nullptr ? nullptr : values + which * r * stride, r, columns, stride};
  }
  Block half_of_columns(std::int64_t which) const {
    const std::int64_t c = columns / 2;
    return {values == nullptr ? nullptr : values + which * c, rows, c, stride};
  }
};

// A matrix of its own for intermediate results.
class Scratch {
 public:
  Scratch(const Block& like, std::int64_t rows, std::int64_t columns)
      : values_(like.values == nullptr ? 0 : static_cast<std::size_t>(rows * columns)),
        block_{values_.empty() ? nullptr : values_.data(), rows, columns, columns} {}
  const Block& block() const { return block_; }

 private:
  std::vector<double> values_;
  Block block_;
};

// to (+)= sign * from
void add_values(const Block& to, const Block& from, double sign, bool keep) {
  if (to.values == nullptr) return;
  for (std::int64_t i = 0; i < to.rows; ++i) {
    for (std::int64_t j = 0; j < to.columns; ++j) {
      to.at(i, j) = (keep ? to.at(i, j) : 0) + sign * from.at(i, j);
    }
  }
}

// C (+)= A B^T
void multiply_values(const Block& A, const Block& B, const Block& C, bool keep) {
  if (C.values == nullptr) return;
  for (std::int64_t i = 0; i < C.rows; ++i) {
    for (std::int64_t j = 0; j < C.columns; ++j) {
      double sum = keep ? C.at(i, j) : 0;
      for (std::int64_t l = 0; l < A.columns; ++l) sum += A.at(i, l) * B.at(j, l);
      C.at(i, j) = sum;
    }
  }
}

// Strassen's seven products: signs of the blocks 11, 12, 21, 22 of A and of B^T in each factor, and
// of the product in the blocks of C.
struct Seventh {
  std::array<int, 4> a, b, c;
};
constexpr std::array<Seventh, 7> kSeven{{{{1, 0, 0, 1}, {1, 0, 0, 1}, {1, 0, 0, 1}},
                                         {{0, 0, 1, 1}, {1, 0, 0, 0}, {0, 0, 1, -1}},
                                         {{1, 0, 0, 0}, {0, 1, 0, -1}, {0, 1, 0, 1}},
                                         {{0, 0, 0, 1}, {-1, 0, 1, 0}, {1, 0, 1, 0}},
                                         {{1, 1, 0, 0}, {0, 0, 0, 1}, {-1, 1, 0, 0}},
                                         {{-1, 0, 1, 0}, {1, 1, 0, 0}, {0, 0, 0, 1}},
                                         {{0, 1, 0, -1}, {0, 0, 1, 1}, {1, 0, 0, 0}}}};

// Block number n of a matrix, or of its transpose.
Block block_of(const Block& matrix, std::size_t n) {
  return matrix.part(static_cast<std::int64_t>(n / 2), static_cast<std::int64_t>(n % 2));
}
Block transposed_block_of(const Block& matrix, std::size_t n) {
  return matrix.part(static_cast<std::int64_t>(n % 2), static_cast<std::int64_t>(n / 2));
}

bool splits(const Block& A, const Block& C) { return A.columns > 1 && C.rows > 1 && C.columns > 1; }

class DepthFirst {
 public:
  DepthFirst(std::int64_t fast_words, Multiplication multiplication)
      : fast_words_(fast_words), multiplication_(multiplication) {}

  const ProductWords& words() const { return words_; }

  // C (+)= A B^T, everything in slow memory.
  void multiply(const Block& A, const Block& B, const Block& C, bool keep) {
    const std::int64_t needed = A.words() + B.words() + C.words();
    if (needed <= fast_words_) {
      words_.read += A.words() + B.words() + (keep ? C.words() : 0);
      words_.written += C.words();
      words_.peak = std::max(words_.peak, needed);
      multiply_values(A, B, C, keep);
    } else if (multiplication_ == Multiplication::strassen && splits(A, C)) {
      seven(A, B, C, keep);
    } else {
      halves(A, B, C, keep);
    }
  }

 private:
  // The longest side is cut; where it is the inner one, the second half adds to the first.
  void halves(const Block& A, const Block& B, const Block& C, bool keep) {
    if (A.columns >= C.rows && A.columns >= C.columns) {
      multiply(A.half_of_columns(0), B.half_of_columns(0), C, keep);
      multiply(A.half_of_columns(1), B.half_of_columns(1), C, true);
    } else if (C.rows >= C.columns) {
      for (const std::int64_t which : {0, 1}) {
        multiply(A.half_of_rows(which), B, C.half_of_rows(which), keep);
      }
    } else {
      for (const std::int64_t which : {0, 1}) {
        multiply(A, B.half_of_rows(which), C.half_of_columns(which), keep);
      }
    }
  }

  void seven(const Block& A, const Block& B, const Block& C, bool keep) {
    const Scratch left(C, A.rows / 2, A.columns / 2), right(C, B.rows / 2, B.columns / 2),
        product(C, C.rows / 2, C.columns / 2);
    std::array<bool, 4> begun{keep, keep, keep, keep};
    for (const Seventh& one : kSeven) {
      sum(left.block(), one.a, [&](std::size_t n) { return block_of(A, n); });
      sum(right.block(), one.b, [&](std::size_t n) { return transposed_block_of(B, n); });
      multiply(left.block(), right.block(), product.block(), false);
      for (std::size_t n = 0; n < one.c.size(); ++n) {
        if (one.c[n] == 0) continue;
        move(block_of(C, n), product.block(), one.c[n], begun[n]);
        begun[n] = true;
      }
    }
  }

  template <class Part>
  void sum(const Block& to, const std::array<int, 4>& signs, const Part& part) {
    bool begun = false;
    for (std::size_t n = 0; n < signs.size(); ++n) {
      if (signs[n] == 0) continue;
      move(to, part(n), signs[n], begun);
      begun = true;
    }
  }

  // Word by word: one operand, the other where it adds to it, the result.
  void move(const Block& to, const Block& from, double sign, bool keep) {
    words_.read += from.words() + (keep ? to.words() : 0);
    words_.written += to.words();
    words_.peak = std::max<std::int64_t>(words_.peak, 2);
    add_values(to, from, sign, keep);
  }

  std::int64_t fast_words_;
  Multiplication multiplication_;
  ProductWords words_;
};

// Strassen on what lies in fast memory; the most scratch it had.
std::int64_t in_place_strassen(const Block& A, const Block& B, const Block& C) {
  if (!splits(A, C)) {
    multiply_values(A, B, C, false);
    return 0;
  }
  const Scratch left(C, A.rows / 2, A.columns / 2), right(C, B.rows / 2, B.columns / 2),
      product(C, C.rows / 2, C.columns / 2);
  std::array<bool, 4> begun{};
  std::int64_t deeper = 0;
  for (const Seventh& one : kSeven) {
    bool left_begun = false, right_begun = false;
    for (std::size_t n = 0; n < one.a.size(); ++n) {
      if (one.a[n] != 0) {
        add_values(left.block(), block_of(A, n), one.a[n], left_begun);
        left_begun = true;
      }
      if (one.b[n] != 0) {
        add_values(right.block(), transposed_block_of(B, n), one.b[n], right_begun);
        right_begun = true;
      }
    }
    deeper = std::max(deeper, in_place_strassen(left.block(), right.block(), product.block()));
    for (std::size_t n = 0; n < one.c.size(); ++n) {
      if (one.c[n] == 0) continue;
      add_values(block_of(C, n), product.block(), one.c[n], begun[n]);
      begun[n] = true;
    }
  }
  return deeper + left.block().words() + right.block().words() + product.block().words();
}

bool power_of_two(std::int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

void require(const ProductTask& task) {
  for (const std::int64_t size : {task.rows_q, task.rows_k, task.head_dim}) {
    if (power_of_two(size)) continue;
    throw InvalidProblem("product: " + std::to_string(size) + " is no power of two");
  }
  const auto filled = [](const std::vector<double>& values, std::int64_t words) {
    return values.empty() || values.size() == static_cast<std::size_t>(words);
  };
  if (!filled(task.Q, task.rows_q * task.head_dim) ||
      !filled(task.K, task.rows_k * task.head_dim) || task.Q.empty() != task.K.empty()) {
    throw InvalidProblem("product: Q and K have other numbers of values than their sizes say");
  }
}

struct Operands {
  std::vector<double> Q, K, S;
  Block q, k, s;

  explicit Operands(const ProductTask& task)
      : Q(task.Q),
        K(task.K),
        S(task.Q.empty() ? 0 : static_cast<std::size_t>(task.rows_q * task.rows_k)),
        q{Q.empty() ? nullptr : Q.data(), task.rows_q, task.head_dim, task.head_dim},
        k{K.empty() ? nullptr : K.data(), task.rows_k, task.head_dim, task.head_dim},
        s{S.empty() ? nullptr : S.data(), task.rows_q, task.rows_k, task.rows_k} {}
};

Block rows_from(const Block& matrix, std::int64_t first, std::int64_t rows) {
  return {matrix.values == nullptr ? nullptr : matrix.values + first * matrix.stride, rows,
          matrix.columns, matrix.stride};
}

}  // namespace

CountedProduct depth_first_product(const ProductTask& task, std::int64_t fast_words,
                                   Multiplication multiplication) {
  constexpr std::int64_t kLeast = 3;
  require(task);
  if (fast_words < kLeast) {
    throw InvalidProblem("product: fast_words is " + std::to_string(fast_words) +
                         ", but one multiplication needs 3");
  }
  Operands operands(task);
  DepthFirst depth_first(fast_words, multiplication);
  depth_first.multiply(operands.q, operands.k, operands.s, false);
  return {std::move(operands.S), depth_first.words()};
}

CountedProduct resident_product(const ProductTask& task, std::int64_t tile,
                                Multiplication multiplication) {
  require(task);
  if (!power_of_two(tile) || tile > std::min(task.rows_q, task.rows_k)) {
    throw InvalidProblem("product: tile " + std::to_string(tile) +
                         " must be a power of two and no more than the rows");
  }
  Operands operands(task);
  ProductWords words;
  for (std::int64_t i = 0; i < task.rows_q; i += tile) {
    const Block Q = rows_from(operands.q, i, tile);
    words.read += Q.words();
    for (std::int64_t j = 0; j < task.rows_k; j += tile) {
      const Block K = rows_from(operands.k, j, tile);
      words.read += K.words();
      const Block S{operands.s.values == nullptr ? nullptr : &operands.s.at(i, j), tile, tile,
                    operands.s.stride};
      std::int64_t scratch = 0;
      if (multiplication == Multiplication::strassen) {
        scratch = in_place_strassen(Q, K, S);
      } else {
        multiply_values(Q, K, S, false);
      }
      words.peak = std::max(words.peak, Q.words() + K.words() + S.words() + scratch);
    }
  }
  return {std::move(operands.S), words};
}

}  // namespace attest::certify
