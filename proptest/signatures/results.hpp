#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "proptest/signatures/alternative.hpp"

namespace attest::proptest {

/// The pass in which a kernel went wrong.
enum class Pass : std::uint8_t { none, forward, backward };

/// The outputs of one run, held against the truth and against the results of known mistakes.
class Results {
 public:
  /// Judges the run. Requires: what the scene refers to outlives this object.
  explicit Results(const Scene& scene);

  /// Returns the first pass with a refused output.
  Pass wrong() const;
  bool ran_backward() const { return scene_.direction == Direction::backward; }

  /// Returns the known mistakes of the pass that apply. Requires: a pass that went wrong.
  std::vector<Alternative> alternatives(Pass pass, Suspects only) const;

  /// Tells whether every output is the alternative's.
  bool equals(const Alternative& alternative) const;

  /// Tells whether the mistake leaves the dtype's range, where its bounds say nothing. A gradient
  /// without a limit has left it; an LSE of -inf is an answer.
  bool leaves_range(const Alternative& alternative) const;

  /// Tells whether the alternative would be refused where the run was.
  bool tells_apart(const Alternative& alternative) const;

  /// Returns how little likely a chance it is that the run equals the alternative, in bits: for
  /// each element of a refused output the logarithm of the alternative's distance from the truth
  /// over its bound, and one bit where it is 0, infinite or NaN, as much is that has no value.
  /// Requires: equals(alternative).  [python/api/judgement_test "by chance"]
  double bits_of_agreement(const Alternative& alternative) const;

 private:
  bool refuses(const Expected& expected) const;
  const Tensor& truth_of(const std::string& output) const;

  Scene scene_;
  std::set<std::string> refused_;  // outputs
};

}  // namespace attest::proptest
