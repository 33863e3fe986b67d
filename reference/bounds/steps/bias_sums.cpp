#include "reference/bounds/steps/bias_sums.hpp"

#include <cmath>
#include <map>

namespace attest::reference {
namespace {

Eigen::Index outputs_of(const std::vector<Axis>& axes) {
  Eigen::Index count = 1;
  for (const Axis& axis : axes) count *= axis.extent;
  return count;
}

// Rows that one element is a sum over, at most.
Eigen::Index rows_of_an_output(const Problem& problem) {
  const std::array<bool, 4>& axes = problem.bias.axes;
  return (axes[0] ? 1 : problem.batch) * (axes[1] ? 1 : problem.num_heads_q) *
         (axes[2] ? 1 : problem.seqlen_q);
}

Matrix ones_for(const Problem& problem) {
  const bool some = problem.bias.kind != Bias::Kind::none;
  return Matrix::Ones(some ? rows_of_an_output(problem) : 0, 1);
}

}  // namespace

BiasEntries::BiasEntries(const GradientInputs& in)
    : some_(in.problem.bias.kind != Bias::Kind::none),
      of_keys_(in.problem.bias.axes[3]),
      keys_(in.group.sequence.k_length) {
  const Eigen::Index rows = some_ ? in.Q.rows() : 0, columns = of_keys_ ? keys_ : 1;
  for (Matrix* matrix :
       {&magnitude_, &inherited_, &errors_.proved, &errors_.linear, &errors_.deviation, &terms_}) {
    matrix->setZero(rows, columns);
  }
  if (some_ && in.alike_dO.size() > 0) alike_.setZero(rows, keys_);
}

void BiasEntries::add(const RowBlock& block, const KeyTile& tile, const EntryErrors& entries) {
  if (!some_) return;
  const WeightedErrors& errors = entries.of_bias();
  const Matrix &magnitude = entries.magnitude_of_bias(), &inherited = entries.inherited_of_bias();
  for (Eigen::Index i = 0; i < block.count; ++i) {
    const Eigen::Index row = block.first + i;
    for (Eigen::Index j = 0; j < tile.count && tile.first + j < keys_; ++j) {
      if (errors.proved(i, j) == 0 && magnitude(i, j) == 0) continue;  // hidden
      const Eigen::Index column = of_keys_ ? tile.first + j : 0;
      magnitude_(row, column) += magnitude(i, j);
      inherited_(row, column) += inherited(i, j);
      errors_.proved(row, column) += errors.proved(i, j);
      errors_.linear(row, column) += errors.linear(i, j);
      errors_.deviation(row, column) += errors.deviation(i, j);
      terms_(row, column) += 1;
      if (alike_.size() > 0) alike_(row, tile.first + j) = entries.alike(i, j);
    }
  }
}

BiasSums::BiasSums(const Problem& problem, const Numerics& numerics)
    : problem_(problem),
      axes_(problem.bias_axes()),
      ones_(ones_for(problem), {ones_for(problem), {}}),
      sums_(numerics, ones_, outputs_of(axes_)),
      inherited_(Matrix::Zero(outputs_of(axes_), 1)),
      alike_(Matrix::Zero(outputs_of(axes_), 1)),
      terms_(Vector::Zero(outputs_of(axes_))),
      summands_(static_cast<std::size_t>(outputs_of(axes_)), 0) {}

Eigen::Index BiasSums::output(const Group& group, Eigen::Index row, Eigen::Index key) const {
  const auto at = [&](std::size_t axis, std::int64_t index) {
    return problem_.bias.axes[axis] ? index : 0;
  };
  return ((at(0, group.sequence.number) * axes_[1].extent + at(1, group.query_head(row))) *
              axes_[2].extent +
          at(2, group.query(row))) *
             axes_[3].extent +
         at(3, key);
}

void BiasSums::add(const Group& group, const BiasEntries& entries) {
  for (Eigen::Index row = 0; row < entries.terms_.rows(); ++row) {
    for (Eigen::Index key = 0; key < entries.terms_.cols(); ++key) {
      if (entries.terms_(row, key) == 0) continue;
      const Eigen::Index o = output(group, row, key);
      Eigen::Index& summand = summands_[static_cast<std::size_t>(o)];
      sums_.add_entry(o, summand++, entries.magnitude_(row, key),
                      {entries.errors_.proved(row, key), entries.errors_.linear(row, key),
                       entries.errors_.deviation(row, key)});
      inherited_(o, 0) += entries.inherited_(row, key);
      terms_(o) += entries.terms_(row, key);
    }
  }
  add_alike(group, entries);
}

// The roundings of dP of one key are the same in rows whose dO are alike.
void BiasSums::add_alike(const Group& group, const BiasEntries& entries) {
  for (Eigen::Index key = 0; key < entries.alike_.cols(); ++key) {
    std::map<Eigen::Index, double> sums;
    for (Eigen::Index row = 0; row < entries.alike_.rows(); ++row) {
      sums[output(group, row, key)] += entries.alike_(row, key);
    }
    for (const auto& [o, sum] : sums) alike_(o, 0) = std::hypot(alike_(o, 0), sum);
  }
}

}  // namespace attest::reference
