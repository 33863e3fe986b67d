#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/abi/attest_kernel.h"
#include "core/problem.hpp"

/// Features of the scores: they change S between scale Q K^T and the softmax. Beside them stand
/// those that a call asks for in the same way: sinks, and pages of K and V.
namespace attest {

/// Everything about a feature but its formula, which kernels, references and their bounds know.
/// How it is drawn and made simpler is in proptest/values/score_draws.hpp.
struct ScoreFeature {
  std::uint32_t claim;      // bit of attest_description.features
  const char* word;         // key of problem strings; in certificates and names of signatures
  const char* name;         // in sentences
  const char* the_feature;  // the same with its article
  const char* example;      // a value, as problem strings have it
  bool additive;            // adds what does not depend on Q and K: a shift of all scores stays one
  bool in_scores;  // changes S by numbers of the problem; else it is beside S, as a sink, or
                   // a tensor of a call
  bool in_storage = false;  // says where K and V lie: no result is another
  bool in_mask =
      false;  // says which pairs are visible: it meets the scores' own features by chance
  std::span<const char* const> kinds = {};  // values that pairs of a campaign meet; {}: the example
  bool (*present)(const Problem&);
  bool (*asked)(const attest_problem&);  // null: the arguments of a call tell
  void (*remove)(Problem&);
  /// Takes the value of `is` where the problem has that of `was`.
  void (*follow)(Problem&, const Problem& was, const Problem& is);
  /// The value in a problem string, to and fro.
  std::string (*value)(const Problem&);
  void (*parse)(Problem&, const std::string& value);
  /// Throws InvalidProblem for a value that is none.
  void (*validate)(const Problem&);
};

/// Returns the table, in the order in which problem strings have them.
std::span<const ScoreFeature> score_features();

/// Returns the bits of the features in S, for kernels that know every formula.
std::uint32_t score_feature_claims();

/// Removes every feature.
void remove_score_features(Problem& problem);

/// Removes those under which a shift of all scores of a row is none of its weights.
void remove_features_not_additive(Problem& problem);

/// Tells whether the problem of a call asks for some feature.
bool asks_score_feature(const attest_problem& problem);

}  // namespace attest
