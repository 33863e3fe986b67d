#pragma once

#include <vector>

#include "reference/bounds/steps/gradient_sums.hpp"

/// Errors of dSinks before they are finished: of each head the sum of the sink's column of dS over
/// the rows of all sequences (docs/theory/error-bounds/backward.md, "dz_h").
namespace attest::reference {

/// The sink's column of a group's rows.
class SinkEntries {
 public:
  explicit SinkEntries(const GradientInputs& in);

  void add(const RowBlock& block, const KeyTile& tile, const EntryErrors& entries);

 private:
  friend class SinkSums;
  std::int64_t column_;           // the sink's, behind the keys
  Matrix magnitude_, inherited_;  // (rows, 1): |dS|; what stored LSE and O leave, signed
  WeightedErrors errors_;         // (rows, 1)
};

/// Sums of all groups, one after the other. A kernel may make one chain of all sequences, so that
/// equal rows of any of them may err together.
class SinkSums {
 public:
  SinkSums(const Problem& problem, const Numerics& numerics);
  SinkSums(const SinkSums&) = delete;
  SinkSums& operator=(const SinkSums&) = delete;

  void add(const Group& group, const SinkEntries& entries);

  /// After all groups.
  GradientSums finish();
  const Matrix& inherited() const { return inherited_; }  // (heads, 1)

 private:
  double rows_;  // of a head
  Operand ones_;
  SumsOfOutputs sums_;
  Matrix inherited_;
  std::vector<Eigen::Index> summands_;  // of each head, so far
};

}  // namespace attest::reference
