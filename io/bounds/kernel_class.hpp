#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/problem.hpp"

/// The class of kernels the lower bounds hold for: docs/theory/bounds/class.md.
namespace attest::io {

/// K1: what `fast_words` counts.
enum class FastMemoryUse : std::uint8_t {
  empty_and_complete,  // empty at the start; every word that arithmetic touches is counted
  preloaded,           // holds inputs at the start
  uncounted_words,     // registers or scratch outside the count
};

/// K2: how the products are formed.
enum class Products : std::uint8_t {
  standard,      // every visible s_ij and every output a sum of its own products, in any order
  scores_given,  // the weights are an input: no score is formed
  shortcut,      // differences of keys, K^T V, low rank, Strassen, shortcuts by value, scale 0
};

/// K3: which operands share storage.
enum class Storage : std::uint8_t {
  disjoint,
  key_is_value,  // V is the leading columns of K, or K those of V (latent attention)
  query_is_key,  // Q and K are one array
  unknown,       // anything else, stride 0 included
};

/// Evaluations of a score, P or dP: perhaps more than one, or one.
enum class Evaluation : std::uint8_t { may_recompute, once };

/// How the d_k products of one evaluation of a score are added.
enum class ScoreSums : std::uint8_t {
  one_chain,     // one running sum, begun and finished within the evaluation
  partial_sums,  // partial sums that other evaluations may use
};

/// K6: how several blocks, each with `fast_words` of its own, depend on one another.
enum class Blocks : std::uint8_t {
  one_after_another,  // could be run one after another: no cyclic communication
  communicating,
  shared_transfers,  // one word read reaches several blocks and is counted once
};

/// How the rows of one index (query, dO, dQ of a row; key, value, dK, dV of a column) move.
enum class RowMovement : std::uint8_t {
  by_word,
  whole_index,  // all of them enter and leave together; a read-modify-write costs two words
};

/// Backward: what becomes of O and LSE of the forward pass.
enum class SavedOutputs : std::uint8_t {
  optional,  // delta may come of P and dP, the row sums of the scores
  read,      // P comes of LSE and delta of dO and O, both read from slow memory
};

/// Role of LSE: no output, or a written one.
enum class LseOutput : std::uint8_t { none, written };

/// Facts known of a kernel. The defaults are the plain model of two-level memory: every bound that
/// needs a declaration (evaluates once, moves whole indices, reads the saved outputs) does not
/// apply.
struct KernelClass {
  FastMemoryUse fast_memory = FastMemoryUse::empty_and_complete;
  Products products = Products::standard;
  Storage storage = Storage::disjoint;
  Evaluation evaluation = Evaluation::may_recompute;
  ScoreSums score_sums = ScoreSums::one_chain;
  RowMovement movement = RowMovement::by_word;
  SavedOutputs saved = SavedOutputs::optional;
  LseOutput lse = LseOutput::none;
  Blocks blocks = Blocks::one_after_another;
  std::int64_t num_blocks = 1;  // K6

  /// The number of fast memories that begin empty: 1, or num_blocks when they communicate.
  std::int64_t fast_memories() const { return blocks == Blocks::communicating ? num_blocks : 1; }

  friend bool operator==(const KernelClass&, const KernelClass&) = default;
};

/// The plain class for a problem: all defaults, but with a softmax scale of 0 (K2), when every
/// score is 0 whatever Q and K hold.  [io/bounds/class_test "scale zero"]
KernelClass plain_class(const Problem& problem);

/// A condition of a bound and whether the case at hand meets it.
struct Condition {
  enum class State : std::uint8_t { met, failed };
  std::string name;  // "K3", or "range" for a validity range
  std::string text;  // what is needed
  State state = State::met;
  std::string got;  // what was found, when it failed
};

/// K1 to K6 for a kernel. K4 and K5 are met by the way the bounds are computed: Extent leaves rows
/// with one visible key out, SegmentLength holds whole numbers only.
///
/// Requires: num_blocks at least 1. Else throws InvalidProblem.
/// [io/bounds/class_test "the conditions are printed"]
std::vector<Condition> class_conditions(const KernelClass& kernel);

}  // namespace attest::io
