#include "sparse/inputs/words/lower_bounds.hpp"

#include <algorithm>
#include <utility>

#include "io/bounds/dense/backward.hpp"
#include "io/bounds/dense/forward.hpp"
#include "io/bounds/formula.hpp"
#include "io/bounds/segments.hpp"
#include "io/bounds/statement.hpp"
#include "sparse/inputs/words/slow_csr.hpp"

namespace attest::sparse {
namespace {

// Entries of A in columns where B has one.
io::Words entries_that_meet(const CsrMatrix& A, const CsrMatrix& B) {
  const auto in_A = A.column_counts(), in_B = B.column_counts();
  io::Words entries = 0;
  for (std::size_t l = 0; l < in_A.size(); ++l) entries += in_B[l] > 0 ? in_A[l] : 0;
  return entries;
}

std::int64_t entries_of(const CsrMatrix& matrix, std::int64_t row) {
  return static_cast<std::int64_t>(matrix.row_columns(row).size());
}

io::AttentionEntries entries_of(const SparseOperands& operands, const Work& work) {
  return {work.nonzeros, operands.Q.columns, operands.Q.nonzeros(), work.pairs};
}

// Counts the entries that decide a gradient. dK needs all of V where Q has an entry; without an
// entry of V, dS is 0 and Q and K decide weights alone.
io::Words compulsory_entries(const SparseOperands& operands) {
  const io::Words of_V = operands.V.nonzeros();
  if (of_V == 0) {
    return entries_that_meet(operands.Q, operands.K) + entries_that_meet(operands.K, operands.Q);
  }
  return io::Words(operands.Q.nonzeros()) + operands.K.nonzeros() +
         (operands.Q.nonzeros() > 0 ? of_V : io::Words(0));
}

// The same without the entries of K at keys of which V has none: dP is 0 there, whoever forms it.
SparseOperands where_values_are(SparseOperands operands) {
  CsrMatrix keys;
  keys.rows = operands.K.rows, keys.columns = operands.K.columns;
  keys.row_offsets.reserve(operands.K.row_offsets.size());
  for (std::int64_t j = 0; j < keys.rows; ++j) {
    if (entries_of(operands.V, j) > 0) {
      const auto columns = operands.K.row_columns(j);
      const auto values = operands.K.row_values(j);
      keys.column_indices.insert(keys.column_indices.end(), columns.begin(), columns.end());
      keys.values.insert(keys.values.end(), values.begin(), values.end());
    }
    keys.row_offsets.push_back(keys.nonzeros());
  }
  operands.K = std::move(keys);
  return operands;
}

std::string fault_of_keys(const SparseOperands& operands) {
  return operands.K.rows > 1 ? "" : "there is one key, which weighs 1 whatever its score";
}

// Without an entry of V all of O and dS is 0, and Q and K decide weights alone.
std::string fault_of_values(const SparseOperands& operands) {
  return operands.V.nonzeros() > 0 ? "" : "V has no entry";
}

}  // namespace

Work work_of(const SparseOperands& operands) {
  operands.validate();
  io::Words score_products = 0, value_products = 0, gradient_products = 0;
  const auto in_Q = operands.Q.column_counts(), in_K = operands.K.column_counts();
  for (std::size_t l = 0; l < in_Q.size(); ++l) score_products += io::Words(in_Q[l]) * in_K[l];
  const CsrMatrix support = product_structure(operands.Q, operands.K);
  const auto seen = support.column_counts();
  for (std::int64_t j = 0; j < operands.V.rows; ++j) {
    const auto row = static_cast<std::size_t>(j);
    value_products += io::Words(seen[row]) * entries_of(operands.V, j);
    gradient_products += io::Words(seen[row]) * entries_of(operands.K, j);
  }
  for (std::int64_t i = 0; i < operands.Q.rows; ++i) {
    gradient_products += io::Words(entries_of(support, i)) * entries_of(operands.Q, i);
  }
  return {support.nonzeros(), score_products.value(), value_products.value(),
          gradient_products.value(),
          operands.Q.nonzeros() + operands.K.nonzeros() + operands.V.nonzeros()};
}

io::KernelClass class_on(const SparseOperands& operands, io::KernelClass kernel) {
  if (operands.softmax_scale == 0) kernel.products = io::Products::shortcut;
  return kernel;
}

std::vector<io::Bound> lower_bounds(const SparseOperands& operands, const io::KernelClass& declared,
                                    std::int64_t fast_words) {
  const Work work = work_of(operands);
  const io::KernelClass kernel = class_on(operands, declared);
  const io::Bound compulsory =
      io::Statement("sparse_operands_compulsory", io::Tag::proved,
                    "nnz(V) + entries of Q and K that meet + q d_v", "sparse-inputs")
          .needs_class(kernel, fast_words)
          .needs("keys", "at least two keys", fault_of_keys(operands))
          .needs("values", "V has an entry", fault_of_values(operands))
          .words([&] {
            return (entries_that_meet(operands.Q, operands.K) +
                    entries_that_meet(operands.K, operands.Q) + operands.V.nonzeros() +
                    io::Words(operands.Q.rows) * operands.V.columns)
                .value();
          });
  // The outputs' products are counted one by one, so that no d_v multiplies the pairs.
  io::Extent extent;
  extent.rows = operands.Q.rows;
  extent.keys = operands.K.rows;
  extent.head_dim_v = 0;
  extent.pairs = work.pairs;
  const io::SparseInputs inputs{work.score_products + work.value_products, work.nonzeros};
  io::Bound once = io::sparse_inputs_once(extent, inputs, kernel, fast_words);
  once.name = "sparse_operands_once";
  once.statement = io::linear_formula("U + W", " - Z");
  const auto needs = [&once](const char* name, const char* text, const std::string& fault) {
    once.conditions.push_back(
        {name, text, fault.empty() ? io::Condition::State::met : io::Condition::State::failed,
         fault});
  };
  needs("keys", "at least two keys", fault_of_keys(operands));
  needs("values", "V has an entry", fault_of_values(operands));
  return {compulsory, once, io::sparse_product_order(extent, inputs, kernel, fast_words),
          io::sparse_attention_order(entries_of(operands, work), kernel, fast_words)};
}

std::vector<io::Bound> backward_lower_bounds(const SparseOperands& operands,
                                             const io::KernelClass& declared,
                                             std::int64_t fast_words) {
  const Work work = work_of(operands);
  const io::KernelClass kernel = class_on(operands, declared);
  const io::Words d_k = operands.Q.columns, d_v = operands.V.columns;
  const io::Bound compulsory =
      io::Statement("sparse_backward_compulsory", io::Tag::proved,
                    "nnz(Q) + nnz(K) + nnz(V) + q (d_k + d_v) + k (d_k + d_v)", "sparse-inputs")
          .needs_class(kernel, fast_words)
          .needs("keys", "at least two keys", fault_of_keys(operands))
          .words([&] {
            return (compulsory_entries(operands) + d_v * operands.Q.rows + d_k * operands.Q.rows +
                    (d_k + d_v) * operands.K.rows)
                .value();
          });
  const io::Bound once =
      io::Statement("sparse_backward_once", io::Tag::proved,
                    io::linear_formula("y U + v U' + W + Z d_v", " - 2Z"), "sparse-inputs")
          .needs_class(kernel, fast_words)
          .needs_chains(kernel)
          .needs_once(kernel)
          .needs("keys", "at least two keys", fault_of_keys(operands))
          .needs("values", "V has an entry", fault_of_values(operands))
          .words([&] {
            const Work counted = work_of(where_values_are(operands));
            const auto pairs = static_cast<double>(counted.pairs);
            const double values = static_cast<double>(counted.value_products) +
                                  pairs * static_cast<double>(d_v.value());
            const double products = io::backward_weighted_products(
                {static_cast<double>(counted.score_products),
                 static_cast<double>(counted.gradient_products), values});
            const io::SegmentedWork run{products, io::product_segment_maximum, fast_words,
                                        kernel.fast_memories()};
            const double words =
                std::max(io::greatest_linear_words_of_segments(run, 0),
                         io::linear_words_of_segments(run, io::SegmentLength(2 * fast_words)));
            return io::whole_words(io::rounded_down(words - 2 * pairs));
          });
  return {compulsory, once,
          io::sparse_attention_order(entries_of(operands, work), kernel, fast_words)};
}

}  // namespace attest::sparse
