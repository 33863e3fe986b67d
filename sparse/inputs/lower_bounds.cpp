#include "sparse/inputs/lower_bounds.hpp"

#include "io/bounds/statement.hpp"
#include "sparse/inputs/slow_csr.hpp"

namespace attest::sparse {
namespace {

// Entries of A in columns where B has one.
io::Words entries_that_meet(const CsrMatrix& A, const CsrMatrix& B) {
  const auto in_A = A.column_counts(), in_B = B.column_counts();
  io::Words entries = 0;
  for (std::size_t l = 0; l < in_A.size(); ++l) entries += in_B[l] > 0 ? in_A[l] : 0;
  return entries;
}

std::string fault_of_keys(const SparseOperands& operands) {
  return operands.K.rows > 1 ? "" : "there is one key, which weighs 1 whatever its score";
}

}  // namespace

Work work_of(const SparseOperands& operands) {
  operands.validate();
  io::Words score_products = 0, value_products = 0;
  const auto in_Q = operands.Q.column_counts(), in_K = operands.K.column_counts();
  for (std::size_t l = 0; l < in_Q.size(); ++l) score_products += io::Words(in_Q[l]) * in_K[l];
  const CsrMatrix support = product_structure(operands.Q, operands.K);
  const auto seen = support.column_counts();
  for (std::int64_t j = 0; j < operands.V.rows; ++j) {
    const auto entries = static_cast<std::int64_t>(operands.V.row_columns(j).size());
    value_products += io::Words(seen[static_cast<std::size_t>(j)]) * entries;
  }
  return {support.nonzeros(), score_products.value(), value_products.value(),
          operands.Q.nonzeros() + operands.K.nonzeros() + operands.V.nonzeros()};
}

std::vector<io::Bound> lower_bounds(const SparseOperands& operands, const io::KernelClass& kernel,
                                    std::int64_t fast_words) {
  const Work work = work_of(operands);
  const io::Bound compulsory =
      io::Statement("sparse_operands_compulsory", io::Tag::proved,
                    "nnz(V) + entries of Q and K that meet + q d_v", "sparse-inputs")
          .needs_class(kernel, fast_words)
          .needs("keys", "at least two keys", fault_of_keys(operands))
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
  once.statement = "2(U + W)/sqrt(M) - Z - 2M";
  const std::string fault = fault_of_keys(operands);
  once.conditions.push_back(
      {"keys", "at least two keys",
       fault.empty() ? io::Condition::State::met : io::Condition::State::failed, fault});
  return {compulsory, once, io::sparse_product_order(extent, inputs, kernel, fast_words),
          io::sparse_attention_order(extent, inputs, kernel, fast_words)};
}

}  // namespace attest::sparse
