#include "io/bounds/dense/backward.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.hpp"
#include "io/bounds/compulsory.hpp"
#include "io/bounds/dense/forward.hpp"
#include "io/bounds/formula.hpp"
#include "io/bounds/segments.hpp"
#include "io/bounds/statement.hpp"
#include "io/machine/words.hpp"

namespace attest::io {
namespace {

std::int64_t smaller_head_dim(const Extent& extent) {
  return std::min(extent.head_dim_qk, extent.head_dim_v);
}

double smaller_squared(const Extent& extent) {
  const auto d = static_cast<double>(smaller_head_dim(extent));
  return d * d;
}

// G(B)/d^2 as a function of B/d^2.
double normalised_maximum(double b) { return std::max(b * b / 4, 4 * b / 3 * std::sqrt(b / 3)); }

Words compulsory_reads(const Extent& extent, Storage storage) {
  const OperandRows rows{extent.rows_many, extent.columns_many, extent.columns_many};
  const Words operands = distinct_words(extent, storage, rows);
  // dO may share storage as well when nothing is known of it.
  if (storage == Storage::unknown) return operands;
  return operands + Words(extent.rows_seeing()) * extent.head_dim_v;
}

Words outputs(const Extent& extent) {
  return Words(extent.rows) * extent.head_dim_qk +
         (Words(extent.head_dim_qk) + extent.head_dim_v) * extent.keys;
}

double squared(double x) { return x * x; }

// Products of an extent without zeros.
BackwardProducts products_of(const Extent& extent) {
  const auto pairs = static_cast<double>(extent.pairs);
  const auto d_k = static_cast<double>(extent.head_dim_qk);
  return {pairs * d_k, 2 * pairs * d_k, 2 * pairs * static_cast<double>(extent.head_dim_v)};
}

// To leading order, theta = M/d^2.
double small_coefficient(double theta) {
  return 2 * backward_weighted_products({1, 2, 2}) / std::sqrt(theta) - 2;
}

std::string outside_small_cache(const Extent& extent, std::int64_t fast_words) {
  const auto words = static_cast<double>(fast_words);
  const std::string above_keys =
      above("fast_words", words, 3 * squared(static_cast<double>(extent.head_dim_qk)));
  return above_keys.empty()
             ? above("fast_words", words, 4 * squared(static_cast<double>(extent.head_dim_v)))
             : above_keys;
}

}  // namespace

double backward_segment_maximum(double usable_words, std::int64_t head_dim) {
  const auto d = static_cast<double>(head_dim);
  return rounded_up(d * d * normalised_maximum(usable_words / (d * d)));
}

Bound compulsory_backward(const Extent& extent, const KernelClass& kernel) {
  return Statement("compulsory_backward", Tag::proved,
                   distinct_words_formula(kernel.storage, {"rows>=2", "columns>=2", "columns>=2"}) +
                       (kernel.storage == Storage::unknown ? "" : " + rows d_v") +
                       " + q d_k + k (d_k + d_v)",
                   "compulsory")
      .needs_class_but(kernel, "K3 K5 K6")
      .of_all_rows()
      .words([&] { return (compulsory_reads(extent, kernel.storage) + outputs(extent)).value(); });
}

Bound theorem_c(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words) {
  return Statement("theorem_c", Tag::proved, segments_formula("12Z", "", "G"), "theorem-c")
      .needs_class(kernel, fast_words)
      .of_events()
      .words([&] {
        const auto maximum = [d = smaller_head_dim(extent)](double usable_words) {
          return backward_segment_maximum(usable_words, d);
        };
        return greatest_words_of_segments(
            {12 * static_cast<double>(extent.pairs), maximum, fast_words, kernel.fast_memories()});
      });
}

Bound theorem_c_large(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words) {
  const auto words = static_cast<double>(fast_words);
  const double square = smaller_squared(extent);
  return Statement("theorem_c_large", Tag::proved, "12Z d^2/M, d = min(d_k, d_v)", "theorem-c")
      .needs_class(kernel, fast_words)
      .needs("range", "27M >= 128 d^2", below("27 fast_words", 27 * words, 128 * square))
      .of_events()
      .words([&] {
        return whole_words(rounded_down(12 * static_cast<double>(extent.pairs) * square / words));
      });
}

BackwardWeights best_backward_weights(const BackwardProducts& products) {
  // v = sin t, y = sin 2t; the derivative is 0 at this cos t, which is at most sqrt(1/2).
  const double scores = products.scores, gradients = products.score_gradients;
  if (scores == 0) return {0, 1};
  const double cosine =
      (std::sqrt(squared(gradients) + 32 * squared(scores)) - gradients) / (8 * scores);
  const double sine = std::sqrt(1 - squared(cosine));
  return {2 * sine * cosine, sine};
}

double backward_weighted_products(const BackwardProducts& products) {
  const BackwardWeights weights = best_backward_weights(products);
  return rounded_down(weights.scores * products.scores +
                      weights.score_gradients * products.score_gradients + products.values);
}

Bound backward_small(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words) {
  const bool once = kernel.evaluation == Evaluation::once;
  return Statement("backward_small", Tag::proved,
                   linear_formula("(3 sqrt(3)/2 d_k + 2 d_v) Z", " - 2Z",
                                  once ? "" : "X min(sqrt(3)/2 d_k, d_v) >= F(M+X)"),
                   "backward-small")
      .needs_class(kernel, fast_words)
      .needs_chains(kernel)
      .needs("range",
             "M <= 3 d_k^2 and M <= 4 d_v^2, or the kernel evaluates every score and dP once",
             once ? "" : outside_small_cache(extent, fast_words))
      .words([&] {
        const BackwardProducts products = products_of(extent);
        const SegmentedWork run{backward_weighted_products(products), product_segment_maximum,
                                fast_words, kernel.fast_memories()};
        // An evaluation more creates a word, for which the argument pays nothing: X must be worth
        // it.
        const double least_ratio = once ? 0
                                        : std::max(1 / (best_backward_weights(products).scores *
                                                        static_cast<double>(extent.head_dim_qk)),
                                                   1 / static_cast<double>(extent.head_dim_v));
        const double words = std::max(greatest_linear_words_of_segments(run, least_ratio),
                                      linear_words_of_segments(run, SegmentLength(2 * fast_words)));
        return whole_words(rounded_down(words - 2 * static_cast<double>(extent.pairs)));
      });
}

Bound backward_row_atomic(const Extent& extent, const KernelClass& kernel,
                          std::int64_t fast_words) {
  return Statement("backward_row_atomic", Tag::proved, "14Z d^2/M - (q + 2k) d, d = min(d_k, d_v)",
                   "row-atomic")
      .needs_class(kernel, fast_words)
      .needs_whole_rows(kernel)
      .words([&] {
        const double moved = 14 * static_cast<double>(extent.pairs) * smaller_squared(extent) /
                             static_cast<double>(fast_words);
        const Words gradient_rows = Words(extent.rows) + Words(2) * extent.keys;
        const auto created =
            static_cast<double>((gradient_rows * smaller_head_dim(extent)).value());
        return whole_words(rounded_down(rounded_down(moved) - created));
      });
}

Bound backward_conjecture(const Extent& extent, const KernelClass& kernel,
                          std::int64_t fast_words) {
  return Statement("backward_conjecture", Tag::conjectured,
                   "14Z d^2/M to leading order, d = min(d_k, d_v)", "row-atomic")
      .needs_class(kernel, fast_words)
      .needs("range", "27M >= 128 d^2",
             below("27 fast_words", 27 * static_cast<double>(fast_words),
                   128 * smaller_squared(extent)))
      .leading([&] {
        return 14 * static_cast<double>(extent.pairs) * smaller_squared(extent) /
               static_cast<double>(fast_words);
      });
}

Bound backward_single_pass(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words,
                           const std::vector<Bound>& others) {
  return Statement("backward_single_pass", Tag::proved,
                   "(4E - S)/3, E the greatest of theorems C and S = (3 rows>=2 + 4 columns>=2) d, "
                   "d = min(d_k, d_v)",
                   "row-atomic")
      .needs_class(kernel, fast_words)
      .needs_whole_rows(kernel)
      .needs_once(kernel)
      .words([&] {
        const Words once = (Words(3) * extent.rows_many + Words(4) * extent.columns_many) *
                           smaller_head_dim(extent);
        Words events = once;
        for (const Bound& bound : others) {
          if (bound.of_events && bound.is_lower_bound())
            events = std::max<Words>(events, bound.words);
        }
        return (events + tiles((events - once).value(), 3)).value();
      });
}

Bound backward_other_rows(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words,
                          const std::vector<Bound>& others) {
  return Statement("backward_other_rows", Tag::proved,
                   "the greatest of the others + (q - rows>=2) d_k + rows=1 d_v + (k - columns>=2) "
                   "(d_k + d_v)",
                   "compulsory")
      .needs_class(kernel, fast_words)
      .of_all_rows()
      .words([&] {
        const Words rows = Words(extent.rows) - extent.rows_many;
        const Words keys = Words(extent.keys) - extent.columns_many;
        return (greatest_of_many_keys(others) + rows * extent.head_dim_qk +
                Words(extent.rows_one) * extent.head_dim_v +
                keys * (Words(extent.head_dim_qk) + extent.head_dim_v))
            .value();
      });
}

Bound backward_saved_outputs(const Extent& extent, const KernelClass& kernel,
                             std::int64_t fast_words, const std::vector<Bound>& others) {
  return Statement("backward_saved_outputs", Tag::proved,
                   "the greatest of the others + rows>=2 (d_v + 1)", "compulsory")
      .needs_class(kernel, fast_words)
      .needs("saved", "O and LSE of the forward pass are read",
             kernel.saved == SavedOutputs::read ? "" : "delta may come of P and dP")
      .words([&] {
        const std::optional<Bound> best = greatest(others);
        const Words saved = Words(extent.rows_many) * (Words(extent.head_dim_v) + 1);
        return (saved + (best ? best->words : 0)).value();
      });
}

std::vector<Bound> backward_bounds(const Extent& extent, const KernelClass& kernel,
                                   std::int64_t fast_words) {
  return {compulsory_backward(extent, kernel),
          theorem_c(extent, kernel, fast_words),
          theorem_c_large(extent, kernel, fast_words),
          backward_small(extent, kernel, fast_words),
          backward_row_atomic(extent, kernel, fast_words),
          backward_conjecture(extent, kernel, fast_words)};
}

double backward_lower_coefficient(double theta) {
  if (!(theta > 0)) throw InvalidProblem("theta = M/d^2 must be positive");
  double best = theta <= 3 ? small_coefficient(theta) : 0;
  // Segments of x M transfers, x from 2^-6 to 2^6.
  constexpr int kStepsPerOctave = 512;
  for (int step = -6 * kStepsPerOctave; step <= 6 * kStepsPerOctave; ++step) {
    const double x = std::exp2(static_cast<double>(step) / kStepsPerOctave);
    best = std::max(best, 12 * x * theta / normalised_maximum((1 + x) * theta));
  }
  return best;
}

}  // namespace attest::io
