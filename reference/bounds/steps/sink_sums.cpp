#include "reference/bounds/steps/sink_sums.hpp"

namespace attest::reference {
namespace {

Eigen::Index heads_of(const Problem& problem) {
  return problem.sinks == Sinks::none ? 0 : problem.num_heads_q;
}

Matrix ones_for(const Problem& problem) {
  const Eigen::Index rows = problem.tensor_batch() * problem.tensor_seqlen_q();
  return Matrix::Ones(problem.sinks == Sinks::none ? 0 : rows, 1);
}

}  // namespace

SinkEntries::SinkEntries(const GradientInputs& in) : column_(in.group.sequence.k_length) {
  const Eigen::Index rows = in.group.sinks > 0 ? in.Q.rows() : 0;
  for (Matrix* matrix :
       {&magnitude_, &inherited_, &errors_.proved, &errors_.linear, &errors_.deviation}) {
    matrix->setZero(rows, 1);
  }
}

void SinkEntries::add(const RowBlock& block, const KeyTile& tile, const EntryErrors& entries) {
  const std::int64_t column = column_ - tile.first;
  if (magnitude_.rows() == 0 || column < 0 || column >= tile.count) return;
  const auto keep = [&](const Matrix& of, Matrix& to) {
    to.middleRows(block.first, block.count) = of.block(0, column, block.count, 1);
  };
  keep(entries.dS, magnitude_);
  keep(entries.inherited_dS, inherited_);
  keep(entries.dK.proved, errors_.proved);
  keep(entries.dK.linear, errors_.linear);
  keep(entries.dK.deviation, errors_.deviation);
}

SinkSums::SinkSums(const Problem& problem, const Numerics& numerics)
    : rows_(static_cast<double>(problem.tensor_batch() * problem.tensor_seqlen_q())),
      ones_(ones_for(problem), {ones_for(problem), {}}),
      sums_(numerics, ones_, heads_of(problem)),
      inherited_(Matrix::Zero(heads_of(problem), 1)),
      summands_(static_cast<std::size_t>(heads_of(problem)), 0) {}

void SinkSums::add(const Group& group, const SinkEntries& entries) {
  for (Eigen::Index row = 0; row < entries.magnitude_.rows(); ++row) {
    const Eigen::Index head = group.query_head(row);
    Eigen::Index& summand = summands_[static_cast<std::size_t>(head)];
    sums_.add_entry(head, summand++, entries.magnitude_(row, 0),
                    {entries.errors_.proved(row, 0), entries.errors_.linear(row, 0),
                     entries.errors_.deviation(row, 0)});
    inherited_(head, 0) += entries.inherited_(row, 0);
  }
}

GradientSums SinkSums::finish() { return sums_.finish(Vector::Constant(inherited_.rows(), rows_)); }

}  // namespace attest::reference
