#pragma once

#include <vector>

#include "reference/bounds/steps/gradient_sums.hpp"

/// Errors of dBias before they are finished: sums of dS, without the softcap's derivative and the
/// scale, over the axes along which the bias is broadcast
/// (docs/theory/error-bounds/backward.md, "Bias").
namespace attest::reference {

/// Holds what the entries of a group's rows add, (rows, keys); (rows, 1) where the bias is the same
/// for all keys: the errors of a row's entries, which share delta and LSE, may all be of one sign.
class BiasEntries {
 public:
  explicit BiasEntries(const GradientInputs& in);

  void add(const RowBlock& block, const KeyTile& tile, const EntryErrors& entries);

 private:
  friend class BiasSums;
  bool some_, of_keys_;
  Eigen::Index keys_;             // without the sink
  Matrix magnitude_, inherited_;  // |dS|; what stored LSE and O leave, signed
  WeightedErrors errors_;
  Matrix terms_;  // entries
  Matrix alike_;  // as EntryErrors has them; empty where none are
};

/// Sums of all groups, one after the other.
class BiasSums {
 public:
  BiasSums(const Problem& problem, const Numerics& numerics);
  BiasSums(const BiasSums&) = delete;
  BiasSums& operator=(const BiasSums&) = delete;

  void add(const Group& group, const BiasEntries& entries);

  /// After all groups.
  GradientSums finish() { return sums_.finish(terms_); }
  const Matrix& inherited() const { return inherited_; }  // (outputs, 1)
  const Matrix& alike() const { return alike_; }          // (outputs, 1), deviations

 private:
  Eigen::Index output(const Group& group, Eigen::Index row, Eigen::Index key) const;
  void add_alike(const Group& group, const BiasEntries& entries);

  const Problem& problem_;
  std::vector<Axis> axes_;
  Operand ones_;
  SumsOfOutputs sums_;
  Matrix inherited_, alike_;
  Vector terms_;
  std::vector<Eigen::Index> summands_;  // of each output, so far
};

}  // namespace attest::reference
