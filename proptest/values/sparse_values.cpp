#include "proptest/values/sparse_values.hpp"

#include <cmath>

#include "core/error.hpp"
#include "core/text/suggest.hpp"

namespace attest::proptest {
namespace {

using enum SparseFamily;

bool full(SparseFamily family) { return family == negative_full || family == nearly_full; }

// A matrix row by row.
class Builder {
 public:
  Builder(std::int64_t rows, std::int64_t columns) {
    matrix_.rows = rows;
    matrix_.columns = columns;
  }
  void add(std::int64_t column, float value) {
    matrix_.column_indices.push_back(static_cast<std::int32_t>(column));
    matrix_.values.push_back(value);
  }
  void end_row() { matrix_.row_offsets.push_back(matrix_.nonzeros()); }
  CsrMatrix take() { return std::move(matrix_); }

 private:
  CsrMatrix matrix_;
};

// Without the rows, and columns, that are drawn.
CsrMatrix with_empty_lines(Rng& rng, const CsrMatrix& matrix) {
  std::vector<double> column(static_cast<std::size_t>(matrix.columns));
  for (double& drawn : column) drawn = rng.uniform();
  Builder builder(matrix.rows, matrix.columns);
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    const bool keep = rng.uniform() < 0.5;
    const auto columns = matrix.row_columns(i);
    for (std::size_t e = 0; e < columns.size(); ++e) {
      if (keep && column[static_cast<std::size_t>(columns[e])] < 0.5) {
        builder.add(columns[e], matrix.row_values(i)[e]);
      }
    }
    builder.end_row();
  }
  return builder.take();
}

// Every second row the negative of the one before: sums over an even number of rows vanish.
CsrMatrix alternating(const CsrMatrix& matrix) {
  Builder builder(matrix.rows, matrix.columns);
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    const std::int64_t source = i - i % 2;
    const auto columns = matrix.row_columns(source);
    for (std::size_t e = 0; e < columns.size(); ++e) {
      const float value = matrix.row_values(source)[e];
      builder.add(columns[e], i == source ? value : -value);
    }
    builder.end_row();
  }
  return builder.take();
}

// All rows as one of three.
CsrMatrix repeated(const CsrMatrix& matrix) {
  Builder builder(matrix.rows, matrix.columns);
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    const auto columns = matrix.row_columns(i % 3);
    for (std::size_t e = 0; e < columns.size(); ++e) {
      builder.add(columns[e], matrix.row_values(i % 3)[e]);
    }
    builder.end_row();
  }
  return builder.take();
}

// Every entry present.
CsrMatrix ones(std::int64_t rows, std::int64_t columns) {
  Builder builder(rows, columns);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) builder.add(j, 1);
    builder.end_row();
  }
  return builder.take();
}

// The last key loses its entries.
CsrMatrix without_last_row(CsrMatrix matrix) {
  const std::int64_t kept = matrix.row_offsets[static_cast<std::size_t>(matrix.rows - 1)];
  matrix.row_offsets.back() = kept;
  matrix.column_indices.resize(static_cast<std::size_t>(kept));
  matrix.values.resize(static_cast<std::size_t>(kept));
  return matrix;
}

}  // namespace

const std::vector<std::pair<SparseFamily, std::string>>& sparse_families() {
  static const std::vector<std::pair<SparseFamily, std::string>> families{
      {normal, "normal"},
      {tiny_scores, "tiny_scores"},
      {huge_scores, "huge_scores"},
      {negative, "negative"},
      {negative_full, "negative_full"},
      {nearly_full, "nearly_full"},
      {empty_lines, "empty_lines"},
      {cancelling, "cancelling"},
      {constant_values, "constant_values"},
      {one_hot, "one_hot"},
      {stored_zeros, "stored_zeros"},
      {half_values, "half_values"},
      {duplicate_keys, "duplicate_keys"},
      {many_keys, "many_keys"},
      {small_values, "small_values"},
      {subnormal_keys, "subnormal_keys"}};
  return families;
}

SparseFamily parse_sparse_family(std::string_view name) {
  std::vector<std::string> names;
  std::string all;
  for (const auto& [family, known] : sparse_families()) {
    if (family == many_keys) continue;
    if (known == name) return family;
    names.push_back(known);
    all += (all.empty() ? "" : " ") + known;
  }
  if (name == "many_keys") {
    throw InvalidProblem(
        "value family 'many_keys' is one of sizes; give sk=400 and density=0.02 with values "
        "normal");
  }
  throw InvalidProblem("value family '" + std::string(name) + "' is not one of sparse inputs" +
                       did_you_mean(std::string(name), names) + " (" + all + ")");
}

SparseFactors sparse_factors(SparseFamily family, Rng& rng) {
  SparseFactors factors;
  if (full(family) || family == negative) {
    factors.sign_q = 1;
    factors.sign_k = -1;
    factors.q = factors.k = 0.5 + 3 * rng.uniform();
  }
  if (family == tiny_scores) factors.q = 0x1p-10 * rng.uniform();
  if (family == huge_scores) factors.q = factors.k = 40;
  if (family == small_values) factors.v = 0x1p-100;
  if (family == subnormal_keys) factors.k = 0x1p-135;
  return factors;
}

float draw_entry(Rng& rng, double factor, double sign) {
  const double value = factor * rng.normal();
  return static_cast<float>(sign == 0 ? value : sign * (std::abs(value) + factor));
}

void make_member(SparseFamily family, SparseOperands& in, Rng& rng) {
  if (family == nearly_full) in.K = without_last_row(in.K);
  if (family == empty_lines) {
    for (CsrMatrix* matrix : {&in.Q, &in.K, &in.V}) *matrix = with_empty_lines(rng, *matrix);
  }
  if (family == cancelling) {
    in.K = alternating(in.K);
    in.V = alternating(in.V);
  }
  if (family == duplicate_keys && in.K.rows >= 3) in.K = repeated(in.K);
  if (family == constant_values) in.V = ones(in.V.rows, in.V.columns);
  if (family == one_hot) {
    for (std::int64_t i = 0; i < in.Q.rows; ++i) {
      const auto first = static_cast<std::size_t>(in.Q.row_offsets[static_cast<std::size_t>(i)]);
      if (!in.Q.row_columns(i).empty()) in.Q.values[first] = 60;
    }
  }
  for (CsrMatrix* matrix : {&in.Q, &in.K, &in.V}) {
    for (float& value : matrix->values) {
      if (family == stored_zeros && rng.uniform() < 0.3) value = 0;
      if (family == half_values) {
        value = static_cast<float>(round_to(DType::bf16, static_cast<double>(value)));
      }
    }
  }
}

SparseOperands with_values(SparseFamily family, const SparseOperands& structure,
                           std::uint64_t seed) {
  Rng rng(seed);
  SparseOperands in = structure;
  if (full(family)) {
    in.Q = ones(in.Q.rows, in.Q.columns);
    in.K = ones(in.K.rows, in.K.columns);
  }
  const SparseFactors factors = sparse_factors(family, rng);
  for (float& value : in.Q.values) value = draw_entry(rng, factors.q, factors.sign_q);
  for (float& value : in.K.values) value = draw_entry(rng, factors.k, factors.sign_k);
  for (float& value : in.V.values) value = draw_entry(rng, factors.v, 0);
  make_member(family, in, rng);
  return in;
}

std::vector<float> draw_cotangent(Rng& rng, std::int64_t count) {
  std::vector<float> dO;
  for (std::int64_t e = 0; e < count; ++e) {
    dO.push_back(static_cast<float>(rng.uniform() < 0.1 ? 0 : rng.normal()));
  }
  return dO;
}

}  // namespace attest::proptest
