#include "proptest/judge/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/dtype/dtype.hpp"
#include "core/error.hpp"
#include "reference/bounds/steps/roundoff.hpp"

namespace attest::proptest {
namespace {

using Index = std::array<std::int64_t, 4>;

// visit(index, number), row-major; with `judged` (not null) of those rows alone.
template <class Visit>
void for_each(const TensorView& view, const Visit& visit, const Judged* judged = nullptr) {
  const auto extent = [&](std::size_t axis) { return axis < view.rank() ? view.extent(axis) : 1; };
  const std::size_t sequence_axis = view.rank() == 4 ? 1 : 2;  // (batch, heads, seqlen) otherwise
  Index i{};
  std::int64_t number = 0;
  for (i[0] = 0; i[0] < extent(0); ++i[0]) {
    for (i[1] = 0; i[1] < extent(1); ++i[1]) {
      for (i[2] = 0; i[2] < extent(2); ++i[2]) {
        const auto batch = static_cast<std::size_t>(i[0]),
                   position = static_cast<std::size_t>(i[sequence_axis]);
        if (judged != nullptr && (*judged)[batch][position] == 0) {
          number += extent(3);
          continue;
        }
        for (i[3] = 0; i[3] < extent(3); ++i[3]) visit(i, number++);
      }
    }
  }
}

double at(const TensorView& view, const Index& i) { return view(i[0], i[1], i[2], i[3]); }

void require_same_shape(const TensorView& a, const TensorView& b) {
  bool same = a.rank() == b.rank();
  for (std::size_t axis = 0; same && axis < a.rank(); ++axis)
    same = a.extent(axis) == b.extent(axis);
  if (!same) throw InternalError("compare: " + std::string(a.name()) + " has another shape");
}

std::string place(const TensorView& view, const Index& i) {
  std::string text = std::string(view.name()) + "[";
  for (std::size_t axis = 0; axis < view.rank(); ++axis) {
    text += fmt::format("{}{}={}", axis == 0 ? "" : ", ", view.axis(axis).name, i[axis]);
  }
  return text + "]";
}

bool same_class(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return true;
}

// The three figures of every element, row-major: packed tensors need no strides.
struct PackedBound {
  const double *proved, *probable, *sigma;

  PackedBound(const reference::ErrorBound& bound, const TensorView& of)
      : proved(bound.deterministic.doubles()),
        probable(bound.probabilistic.doubles()),
        sigma(bound.sigma.doubles()) {
    for (const Tensor* one : {&bound.deterministic, &bound.probabilistic, &bound.sigma}) {
      require_same_shape(of, one->view());
    }
  }
};

// Error, both bounds and sigma of one element.
struct Element {
  double error, proved, probable, sigma;
};

// Reference that a result is held against: the exact result, or another that must agree with it.
enum class Against { exact, another };

// fmt gives NaN the sign of its bits, which say nothing.
std::string number(double value) {
  return std::isnan(value) ? "NaN" : fmt::format("{:.9g}", value);
}

constexpr std::size_t kMostIndices = 4;  // that are listed

// "row 7", "row 7 to 9", "row 1, 3 and 4", "12 of row 1 to 40".
std::string indices_text(std::string_view axis, const std::vector<std::int64_t>& indices) {
  const std::size_t count = indices.size();
  if (count == 1) return fmt::format("{} {}", axis, indices.front());
  const std::string ends = fmt::format("{} {} to {}", axis, indices.front(), indices.back());
  if (indices.back() - indices.front() + 1 == static_cast<std::int64_t>(count)) return ends;
  if (count > kMostIndices) return fmt::format("{} of {}", count, ends);
  const auto last = indices.end() - 1;
  return fmt::format("{} {} and {}", axis, fmt::join(indices.begin(), last, ", "), *last);
}

// The elements refused, and along each axis which indices they have.
struct Refused {
  std::int64_t count = 0;
  std::array<std::vector<char>, 4> met;

  void add(const Index& i) {
    for (std::size_t axis = 0; axis < i.size(); ++axis) {
      const auto index = static_cast<std::size_t>(i[axis]);
      if (met[axis].size() <= index) met[axis].resize(index + 1, 0);
      met[axis][index] = 1;
    }
    ++count;
  }

  // "; 3 of 12 elements are wrong like this, seqlen_q 7 to 8": axes on which all or many are met
  // from end to end say nothing.
  std::string words(const TensorView& view, std::int64_t compared) const {
    if (compared <= 1) return "";
    const char* const elements = compared < view.size() ? "sampled elements" : "elements";
    if (count == compared) return fmt::format("; so are all {} {}", count, elements);
    std::string text = fmt::format("; {} of {} {} {} wrong like this", count, compared, elements,
                                   count == 1 ? "is" : "are");
    for (std::size_t axis = 0; axis < view.rank(); ++axis) {
      std::vector<std::int64_t> indices;
      for (std::size_t k = 0; k < met[axis].size(); ++k) {
        if (met[axis][k] != 0) indices.push_back(static_cast<std::int64_t>(k));
      }
      const std::int64_t extent = view.extent(axis);
      const bool from_end_to_end = indices.front() == 0 && indices.back() == extent - 1;
      const bool all = static_cast<std::int64_t>(indices.size()) == extent;
      if (from_end_to_end && (all || indices.size() > kMostIndices)) continue;
      text += ", " + indices_text(view.axis(axis).name, indices);
    }
    return text;
  }
};

class Collector {
 public:
  Collector(const TensorView& got, Against against) : got_(got), against_(against) {
    result_.output = std::string(got.name());
  }

  void add(const Index& i, double value, double exact, const Element& judged) {
    ++result_.elements;
    const bool comparable = same_class(value, exact);
    const bool finite = comparable && std::isfinite(value);
    double ratio = 0;
    if (!comparable) {
      ratio = std::numeric_limits<double>::infinity();
    } else if (finite && judged.error > 0) {
      // NaN bounds and errors become an infinite ratio, never a pass.
      ratio = judged.error / judged.probable;
      if (!(ratio >= 0)) ratio = std::numeric_limits<double>::infinity();
    }
    const bool proved = !comparable || (finite && !(judged.error <= judged.proved));
    const bool improbable = finite && !(judged.error <= judged.probable);
    // Where nothing is proved and zero would pass too, nothing was judged.
    const bool bounded = std::isfinite(judged.proved) || judged.probable < std::abs(exact);
    if (finite && !bounded) ++unbounded_;
    // An element without errors of its own says nothing of those of the others.
    if (finite && bounded && judged.sigma != 0) {
      const double relative = judged.error / judged.sigma;
      squares_ +=
          std::isnan(relative) ? std::numeric_limits<double>::infinity() : relative * relative;
      ++result_.erring;
    }
    const Verdict verdict = proved       ? Verdict::violated
                            : improbable ? Verdict::improbable
                                         : Verdict::passed;
    if (proved || improbable) refused_[proved ? 0 : 1].add(i);
    const bool graver_one = verdict != worst_ && graver(verdict, worst_) == verdict;
    result_.verdict = graver(result_.verdict, verdict);
    if (result_.elements > 1 && !graver_one && !(verdict == worst_ && ratio > result_.ratio)) {
      return;
    }
    worst_ = verdict;
    result_.ratio = ratio;
    result_.worst_index = i;
    result_.got = value;
    result_.exact = exact;
    result_.bound = proved ? judged.proved : judged.probable;
  }

  Comparison finish() {
    if (result_.erring > 0)
      result_.aggregate = std::sqrt(squares_ / static_cast<double>(result_.erring));
    const std::string element = result_.elements == 0 ? "" : worst_element();
    if (result_.verdict == Verdict::violated) {
      result_.reason =
          "outside the proved bound: " + element + refused_[0].words(got_, result_.elements);
    } else if (result_.verdict == Verdict::improbable) {
      result_.reason = "improbable (1e-12 under independent rounding): " + element +
                       refused_[1].words(got_, result_.elements);
    } else if (result_.erring >= reference::kAggregateElements &&
               !(result_.aggregate <= reference::kAggregateLimit)) {
      result_.verdict = Verdict::improbable;
      result_.reason = fmt::format("{}: rms of error over sigma is {:.3g}, above {}",
                                   result_.output, result_.aggregate, reference::kAggregateLimit);
    } else if (unbounded_ > 0) {
      result_.verdict = Verdict::vacuous;
      result_.reason = fmt::format("{}: no bound is proved for {} of {} elements", result_.output,
                                   unbounded_, result_.elements);
    }
    return result_;
  }

 private:
  std::string worst_element() const {
    const bool exact = against_ == Against::exact;
    std::string values =
        fmt::format("{} is {}, {} {}", place(got_, result_.worst_index), number(result_.got),
                    exact ? "exact" : "in the other result", number(result_.exact));
    if (!same_class(result_.got, result_.exact)) return values;
    const double error = std::abs(result_.got - result_.exact);
    const std::string bound =
        fmt::format("{} {:.3g}", exact ? "bound" : "sum of both bounds", result_.bound);
    if (!exact) return fmt::format("{}, difference {:.3g}, {}", values, error, bound);
    const std::string ulps =
        result_.exact == 0 ? ""
                           : fmt::format(" ({:.3g} ulp)", error / ulp(got_.dtype(), result_.exact));
    return fmt::format("{}, error {:.3g}{}, {}", values, error, ulps, bound);
  }

  const TensorView& got_;
  Against against_;
  Comparison result_;
  Verdict worst_ = Verdict::passed;  // of the worst element
  std::array<Refused, 2> refused_;   // by the proved bound, by the other alone
  std::int64_t unbounded_ = 0;
  double squares_ = 0;  // of errors over sigma
};

}  // namespace

Comparison compare(const TensorView& got, const Tensor& exact, const reference::ErrorBound& bound,
                   const Judged* judged) {
  require_same_shape(got, exact.view());
  const PackedBound b(bound, got);
  const double* const truths = exact.doubles();
  Collector collector(got, Against::exact);
  const auto add = [&](const Index& i, std::int64_t e) {
    const double value = at(got, i), truth = truths[e];
    collector.add(i, value, truth,
                  {std::abs(value - truth), b.proved[e], b.probable[e], b.sigma[e]});
  };
  for_each(got, add, judged);
  return collector.finish();
}

Comparison compare_pair(const TensorView& first, const TensorView& second,
                        const reference::ErrorBound& first_bound,
                        const reference::ErrorBound& second_bound) {
  require_same_shape(first, second);
  const PackedBound one(first_bound, first), other(second_bound, first);
  Collector collector(first, Against::another);
  for_each(first, [&](const Index& i, std::int64_t e) {
    const double a = at(first, i), b = at(second, i);
    collector.add(i, a, b,
                  {std::abs(a - b), one.proved[e] + other.proved[e],
                   one.probable[e] + other.probable[e], one.sigma[e] + other.sigma[e]});
  });
  return collector.finish();
}

Comparison compare_bits(const TensorView& got, const TensorView& expected) {
  require_same_shape(got, expected);
  Comparison result;
  result.output = std::string(got.name());
  for_each(got, [&](const Index& i, std::int64_t) {
    ++result.elements;
    const double value = at(got, i), wanted = at(expected, i);
    const bool equal = value == wanted ||
                       got.bits(i[0], i[1], i[2], i[3]) == expected.bits(i[0], i[1], i[2], i[3]);
    if (equal || result.verdict == Verdict::violated) return;
    result.verdict = Verdict::violated;
    result.worst_index = i;
    result.got = value;
    result.exact = wanted;
    result.ratio = std::numeric_limits<double>::infinity();
    result.reason =
        fmt::format("{} is {}, {} {}", place(got, i), number(value), kExactly, number(wanted));
  });
  return result;
}

bool identical(const Tensor& a, const Tensor& b) {
  return compare_bits(a.view(), b.view()).verdict == Verdict::passed;
}

bool passes(const TensorView& got, const Tensor& exact, const reference::ErrorBound& bound,
            const Judged* judged) {
  return compare(got, exact, bound, judged).verdict == Verdict::passed;
}

}  // namespace attest::proptest
