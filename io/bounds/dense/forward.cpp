#include "io/bounds/dense/forward.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "io/bounds/compulsory.hpp"
#include "io/bounds/formula.hpp"
#include "io/bounds/statement.hpp"

namespace attest::io {
namespace {

double squared(double x) { return x * x; }

SegmentedWork run_of(const KernelClass& kernel, std::int64_t fast_words, double work,
                     SegmentMaximum maximum) {
  return {work, std::move(maximum), fast_words, kernel.fast_memories()};
}

// Work that may be repeated: an evaluation of d_k products creates a word, for which the argument
// pays nothing, so the bound must not fall when there are more of them.
double linear_words(const SegmentedWork& run, std::int64_t head_dim_qk) {
  const double least_ratio = 1 / static_cast<double>(head_dim_qk);
  return std::max(greatest_linear_words_of_segments(run, least_ratio),
                  linear_words_of_segments(run, SegmentLength(2 * run.fast_words)));
}

double both_head_dims(const Extent& extent) {
  return static_cast<double>(extent.head_dim_qk) + static_cast<double>(extent.head_dim_v);
}

std::string outside_small_cache(std::int64_t head_dim_qk, std::int64_t fast_words) {
  return above("fast_words", static_cast<double>(fast_words),
               4 * squared(static_cast<double>(head_dim_qk)));
}

}  // namespace

double product_segment_maximum(double usable_words) {
  return rounded_up(usable_words / 3 * std::sqrt(usable_words / 3));
}

double forward_segment_maximum(double usable_words, std::int64_t head_dim_qk,
                               std::int64_t head_dim_v) {
  const auto d_k = static_cast<double>(head_dim_qk);
  const auto d_v = static_cast<double>(head_dim_v);
  const double k_1 = std::min(d_k, d_v);
  const double inside = k_1 * squared(usable_words / (2 * (d_k + k_1)));
  // sqrt(k^2 + B) - k without cancellation; at k = sqrt(B/3) it is k itself.
  const double carried =
      usable_words <= 3 * d_v * d_v
          ? usable_words / 3 * std::sqrt(usable_words / 3)
          : d_v * squared(usable_words / (std::sqrt(d_v * d_v + usable_words) + d_v));
  return rounded_up(std::max(inside, carried));
}

Bound compulsory_forward(const Extent& extent, const KernelClass& kernel) {
  const bool lse = kernel.lse == LseOutput::written;
  return Statement("compulsory_forward", Tag::proved,
                   distinct_words_formula(kernel.storage,
                                          lse ? OperandNames{"rows", "columns", "columns"}
                                              : OperandNames{"rows>=2", "columns>=2", "columns"}) +
                       (lse ? " + q d_v + q" : " + q d_v"),
                   "compulsory")
      .needs_class_but(kernel, "K3 K5 K6")
      .of_all_rows()
      .words([&] {
        const OperandRows rows{lse ? extent.rows_seeing() : extent.rows_many,
                               lse ? extent.columns_seen : extent.columns_many,
                               extent.columns_seen};
        const Words columns = Words(extent.head_dim_v) + (lse ? 1 : 0);
        return (distinct_words(extent, kernel.storage, rows) + columns * extent.rows).value();
      });
}

Bound scores_only(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words) {
  const auto pairs = static_cast<double>(extent.pairs);
  return Statement("scores_only", Tag::proved, linear_formula("Z d_k", " - Z", "X d_k >= F(M+X)"),
                   "scores")
      .needs_class(kernel, fast_words)
      .needs_chains(kernel)
      .needs("range", "M <= 4 d_k^2", outside_small_cache(extent.head_dim_qk, fast_words))
      .words([&] {
        const double work = pairs * static_cast<double>(extent.head_dim_qk);
        const auto run = run_of(kernel, fast_words, work, product_segment_maximum);
        return whole_words(rounded_down(linear_words(run, extent.head_dim_qk) - pairs));
      });
}

Bound scores_only_large(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words) {
  return Statement("scores_only_large", Tag::proved,
                   segments_formula("Z") +
                       ", F(B) = max(B, (B/2d_k)^2); at least Z d_k^2/M for M >= 2 d_k^2",
                   "scores")
      .needs_class(kernel, fast_words)
      .words([&] {
        const auto maximum = [d_k = static_cast<double>(extent.head_dim_qk)](double usable_words) {
          return rounded_up(std::max(usable_words, squared(usable_words / (2 * d_k))));
        };
        const auto pairs = static_cast<double>(extent.pairs);
        const auto words = static_cast<double>(fast_words);
        const double square = squared(static_cast<double>(extent.head_dim_qk));
        const std::int64_t closed =
            words >= 2 * square ? whole_words(rounded_down(pairs * square / words)) : 0;
        return std::max(closed,
                        greatest_words_of_segments(run_of(kernel, fast_words, pairs, maximum)));
      });
}

Bound theorem_a(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words) {
  return Statement("theorem_a", Tag::proved, segments_formula("Z d_v"), "theorem-a")
      .needs_class(kernel, fast_words)
      .words([&] {
        const auto maximum = [&extent](double usable_words) {
          return forward_segment_maximum(usable_words, extent.head_dim_qk, extent.head_dim_v);
        };
        const double work =
            static_cast<double>(extent.pairs) * static_cast<double>(extent.head_dim_v);
        return greatest_words_of_segments(run_of(kernel, fast_words, work, maximum));
      });
}

Bound theorem_a_large(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words) {
  const auto d = static_cast<double>(extent.head_dim_v);
  return Statement("theorem_a_large", Tag::proved, "4Z d^2/M", "theorem-a")
      .needs_class(kernel, fast_words)
      .needs("range", "d_k = d_v",
             extent.head_dim_qk == extent.head_dim_v ? "" : "d_k and d_v differ")
      .needs("range", "M >= 4 d^2", below("fast_words", static_cast<double>(fast_words), 4 * d * d))
      .words([&] {
        const double moved = 4 * static_cast<double>(extent.pairs) * d * d;
        return whole_words(rounded_down(moved / static_cast<double>(fast_words)));
      });
}

Bound theorem_b(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words) {
  const auto pairs = static_cast<double>(extent.pairs);
  const bool once = kernel.evaluation == Evaluation::once;
  return Statement("theorem_b", Tag::proved,
                   linear_formula("Z (d_k + d_v)", " - Z", once ? "" : "X d_k >= F(M+X)"),
                   "theorem-b")
      .needs_class(kernel, fast_words)
      .needs_chains(kernel)
      .needs("range", "M <= 4 d_k^2, or the kernel evaluates every score once",
             once ? "" : outside_small_cache(extent.head_dim_qk, fast_words))
      .words([&] {
        const double work = pairs * both_head_dims(extent);
        const auto run = run_of(kernel, fast_words, work, product_segment_maximum);
        const double words = once ? std::max(greatest_linear_words_of_segments(run, 0),
                                             linear_words(run, extent.head_dim_qk))
                                  : linear_words(run, extent.head_dim_qk);
        return whole_words(rounded_down(words - pairs));
      });
}

Bound theorem_b_once(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words) {
  return Statement("theorem_b_once", Tag::proved,
                   segments_formula("Z (d_k + d_v)", " - Z") + ", F(B) = (B/3)^(3/2)", "theorem-b")
      .needs_class(kernel, fast_words)
      .needs_chains(kernel)
      .needs_once(kernel)
      .words([&] {
        const double work = static_cast<double>(extent.pairs) * both_head_dims(extent);
        const std::int64_t events =
            greatest_words_of_segments(run_of(kernel, fast_words, work, product_segment_maximum));
        return std::max<std::int64_t>(events - extent.pairs, 0);
      });
}

Bound forward_other_rows(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words,
                         const std::vector<Bound>& others) {
  const bool lse = kernel.lse == LseOutput::written;
  return Statement("forward_other_rows", Tag::proved,
                   std::string("the greatest of the others + (q - rows>=2 + columns - columns>=2) "
                               "d_v") +
                       (lse ? " + q" : ""),
                   "compulsory")
      .needs_class(kernel, fast_words)
      .of_all_rows()
      .words([&] {
        const Words rows = Words(extent.rows) - extent.rows_many;
        const Words columns = Words(extent.columns_seen) - extent.columns_many;
        return (greatest_of_many_keys(others) + (rows + columns) * extent.head_dim_v +
                (lse ? extent.rows : 0))
            .value();
      });
}

std::vector<Bound> forward_bounds(const Extent& extent, const KernelClass& kernel,
                                  std::int64_t fast_words) {
  return {compulsory_forward(extent, kernel),
          scores_only(extent, kernel, fast_words),
          scores_only_large(extent, kernel, fast_words),
          theorem_a(extent, kernel, fast_words),
          theorem_a_large(extent, kernel, fast_words),
          theorem_b(extent, kernel, fast_words),
          theorem_b_once(extent, kernel, fast_words)};
}

double forward_lower_coefficient(double theta) {
  if (!(theta > 0)) throw InvalidProblem("theta = M/d^2 must be positive");
  const double a = 1 / std::sqrt(theta);
  return a <= 0.5 ? 4 * a * a : 4 * a - 1;
}

}  // namespace attest::io
