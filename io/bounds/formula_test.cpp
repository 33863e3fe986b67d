#include "io/bounds/formula.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "core/testing/catch.hpp"
#include "io/bounds/dense/backward.hpp"
#include "io/bounds/dense/forward.hpp"
#include "io/bounds/dense/loss.hpp"
#include "io/bounds/dense/products.hpp"
#include "io/bounds/segments.hpp"

namespace attest::io {
namespace {

// The letters of the formulas, for one head without a mask that writes no LSE.
struct Letters {
  double q = 0, k = 0, d_k = 0, d_v = 0, M = 0;
  double pairs() const { return q * k; }
  double least_d() const { return std::min(d_k, d_v); }
};

// A number between two: a maximum over X and Y, searched on fewer lengths and on all.
struct Range {
  double least = 0, most = 0;
};

using Curve = std::function<double(double usable_words)>;

double product_curve(double usable_words) { return std::pow(usable_words / 3, 1.5); }

// The lengths X that are tried: all up to a length beyond which no maximum lies here, and those of
// the program, X itself or the whole length M + X of a long first segment one of segment_lengths().
constexpr std::int64_t kLongest = 4096;

template <class LookAt>
Range over_lengths(const Letters& at, const LookAt& look_at) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  Range range{kNone, kNone};
  for (std::int64_t length = 1; length < kLongest; ++length) {
    const auto X = static_cast<double>(length);
    range.most = std::max({range.most, look_at(X, false), look_at(X, true)});
  }
  for (const std::int64_t length : segment_lengths()) {
    if (length >= kLongest) break;
    const auto X = static_cast<double>(length);
    range.least = std::max(range.least, look_at(X, false));
    if (X > at.M) range.least = std::max(range.least, look_at(X - at.M, true));
  }
  return range;
}

// max_{X,Y} Y + X (h - 1) + 1, h = ceil((work - F(Y))/F(M+X)) >= 1, Y = X or M + X.
Range of_segments(const Letters& at, double work, const Curve& F) {
  return over_lengths(at, [&](double X, bool long_first) {
    const double Y = long_first ? at.M + X : X;
    const double h = std::ceil((work - F(Y)) / F(at.M + X));
    return h >= 1 ? Y + X * (h - 1) + 1 : 0;
  });
}

// max_X max(X (T - F(X)), M F(M+X) + X (T - F(M)))/F(M+X), for X that are `allowed`.
Range without_ceiling(const Letters& at, double work,
                      const std::function<bool(double X, double full)>& allowed) {
  return over_lengths(at, [&](double X, bool long_first) {
    const double full = product_curve(at.M + X);
    if (!allowed(X, full)) return -std::numeric_limits<double>::infinity();
    return long_first ? at.M + X * (work - product_curve(at.M)) / full
                      : X * (work - product_curve(X)) / full;
  });
}

Range less(Range range, double words) { return {range.least - words, range.most - words}; }
Range exactly(double words) { return {words, words}; }

using Evaluated = std::function<Range(const Letters&)>;

bool any_length(double, double) { return true; }

// Every formula that the dense bounds print, evaluated from its text alone.
const std::map<std::string, Evaluated>& formulas() {
  static const std::map<std::string, Evaluated> all{
      {"rows>=2 d_k + columns>=2 d_k + columns d_v + q d_v",
       [](const Letters& at) {
         return exactly(at.q * at.d_k + at.k * at.d_k + at.k * at.d_v + at.q * at.d_v);
       }},
      {"rows>=2 d_k + columns>=2 (d_k + d_v) + rows d_v + q d_k + k (d_k + d_v)",
       [](const Letters& at) {
         return exactly(2 * (at.q * at.d_k + at.k * (at.d_k + at.d_v)) + at.q * at.d_v);
       }},
      {"max_X max(X (T - F(X)), M F(M+X) + X (T - F(M)))/F(M+X) - Z, T = Z d_k, F(B) = "
       "(B/3)^(3/2), X d_k >= F(M+X)",
       [](const Letters& at) {
         return less(without_ceiling(at, at.pairs() * at.d_k,
                                     [&](double X, double full) { return X * at.d_k >= full; }),
                     at.pairs());
       }},
      {"max_{X,Y} Y + X (h - 1) + 1, h = ceil((Z - F(Y))/F(M+X)) >= 1, F(B) = max(B, (B/2d_k)^2); "
       "at least Z d_k^2/M for M >= 2 d_k^2",
       [](const Letters& at) {
         Range range = of_segments(
             at, at.pairs(), [&](double B) { return std::max(B, B * B / (4 * at.d_k * at.d_k)); });
         if (at.M >= 2 * at.d_k * at.d_k) {
           const double closed = at.pairs() * at.d_k * at.d_k / at.M;
           range = {std::max(range.least, closed), std::max(range.most, closed)};
         }
         return range;
       }},
      {"max_{X,Y} Y + X (h - 1) + 1, h = ceil((Z d_v - F(Y))/F(M+X)) >= 1",
       [](const Letters& at) {
         return of_segments(at, at.pairs() * at.d_v, [&](double B) {
           return forward_segment_maximum(B, static_cast<std::int64_t>(at.d_k),
                                          static_cast<std::int64_t>(at.d_v));
         });
       }},
      {"4Z d^2/M",
       [](const Letters& at) { return exactly(4 * at.pairs() * at.d_k * at.d_k / at.M); }},
      {"max_X max(X (T - F(X)), M F(M+X) + X (T - F(M)))/F(M+X) - Z, T = Z (d_k + d_v), F(B) = "
       "(B/3)^(3/2), X d_k >= F(M+X)",
       [](const Letters& at) {
         return less(without_ceiling(at, at.pairs() * (at.d_k + at.d_v),
                                     [&](double X, double full) { return X * at.d_k >= full; }),
                     at.pairs());
       }},
      {"max_X max(X (T - F(X)), M F(M+X) + X (T - F(M)))/F(M+X) - Z, T = Z (d_k + d_v), F(B) = "
       "(B/3)^(3/2)",
       [](const Letters& at) {
         return less(without_ceiling(at, at.pairs() * (at.d_k + at.d_v), any_length), at.pairs());
       }},
      {"max_{X,Y} Y + X (h - 1) + 1 - Z, h = ceil((Z (d_k + d_v) - F(Y))/F(M+X)) >= 1, F(B) = "
       "(B/3)^(3/2)",
       [](const Letters& at) {
         return less(of_segments(at, at.pairs() * (at.d_k + at.d_v), product_curve), at.pairs());
       }},
      {"max_{X,Y} Y + X (h - 1) + 1, h = ceil((12Z - G(Y))/G(M+X)) >= 1",
       [](const Letters& at) {
         return of_segments(at, 12 * at.pairs(), [&](double B) {
           return backward_segment_maximum(B, static_cast<std::int64_t>(at.least_d()));
         });
       }},
      {"12Z d^2/M, d = min(d_k, d_v)",
       [](const Letters& at) {
         return exactly(12 * at.pairs() * at.least_d() * at.least_d() / at.M);
       }},
      {"max_X max(X (T - F(X)), M F(M+X) + X (T - F(M)))/F(M+X) - 2Z, T = (3 sqrt(3)/2 d_k + 2 "
       "d_v) Z, F(B) = (B/3)^(3/2), X min(sqrt(3)/2 d_k, d_v) >= F(M+X)",
       [](const Letters& at) {
         const double root = std::sqrt(3.0);
         return less(without_ceiling(at, (3 * root / 2 * at.d_k + 2 * at.d_v) * at.pairs(),
                                     [&](double X, double full) {
                                       return X * std::min(root / 2 * at.d_k, at.d_v) >= full;
                                     }),
                     2 * at.pairs());
       }},
      {"max_X max(X (T - F(X)), M F(M+X) + X (T - F(M)))/F(M+X) - 2Z, T = (3 sqrt(3)/2 d_k + 2 "
       "d_v) Z, F(B) = (B/3)^(3/2)",
       [](const Letters& at) {
         return less(
             without_ceiling(at, (3 * std::sqrt(3.0) / 2 * at.d_k + 2 * at.d_v) * at.pairs(),
                             any_length),
             2 * at.pairs());
       }},
      {"14Z d^2/M - (q + 2k) d, d = min(d_k, d_v)",
       [](const Letters& at) {
         const double d = at.least_d();
         return exactly(14 * at.pairs() * d * d / at.M - (at.q + 2 * at.k) * d);
       }},
      {"14Z d^2/M to leading order, d = min(d_k, d_v)",
       [](const Letters& at) {
         return exactly(14 * at.pairs() * at.least_d() * at.least_d() / at.M);
       }},
      {"4nd + 3d^2",
       [](const Letters& at) { return exactly(4 * at.q * at.d_k + 3 * at.d_k * at.d_k); }},
      {"8n^2 d^2/M to leading order, O(nd) + M less",
       [](const Letters& at) { return exactly(8 * at.q * at.q * at.d_k * at.d_k / at.M); }},
      {"max_X max(X (T - F(X)), M F(M+X) + X (T - F(M)))/F(M+X) - n^2 - 3nd, T = 2n^2 d, F(B) = "
       "(B/3)^(3/2)",
       [](const Letters& at) {
         return less(without_ceiling(at, 2 * at.q * at.q * at.d_k, any_length),
                     at.q * at.q + 3 * at.q * at.d_k);
       }},
      {"max_{X,Y} Y + X (h - 1) + 1, h = ceil((qk - F(Y))/F(M+X)) >= 1, F(B) = B^2/d_k^2 + 2B",
       [](const Letters& at) {
         return of_segments(at, at.pairs(),
                            [&](double B) { return B * B / (at.d_k * at.d_k) + 2 * B; });
       }},
      // The closed form that theorem_b once printed beside a greater number.
      {"2Z (d_k + d_v)/sqrt(M) - Z - 2M",
       [](const Letters& at) {
         return exactly(2 * at.pairs() * (at.d_k + at.d_v) / std::sqrt(at.M) - at.pairs() -
                        2 * at.M);
       }},
  };
  return all;
}

// Tells whether the bound's number is what its formula gives, rounded to whole words; nothing if
// nobody evaluated that formula.
std::optional<bool> gives_its_number(const Bound& bound, const Letters& at) {
  const auto found = formulas().find(bound.statement);
  if (found == formulas().end()) return std::nullopt;
  const Range range = found->second(at);
  const double printed =
      bound.form == Form::words ? static_cast<double>(bound.words) : bound.leading;
  const auto least = std::max(rounded_down(range.least), 0.0),
             most = std::max(std::ceil(rounded_up(range.most)), 0.0);
  return least <= printed && printed <= most;
}

std::vector<Bound> bounds_at(const Letters& at, const KernelClass& kernel) {
  const auto size = [](double value) { return static_cast<std::int64_t>(value); };
  const Extent extent = dense_extent(size(at.q), size(at.k), size(at.d_k), size(at.d_v));
  const std::int64_t fast_words = size(at.M);
  std::vector<Bound> all = forward_bounds(extent, kernel, fast_words);
  for (const Bound& bound : backward_bounds(extent, kernel, fast_words)) all.push_back(bound);
  for (const Bound& bound : loss_bounds({extent.rows, extent.head_dim_qk}, kernel, fast_words)) {
    all.push_back(bound);
  }
  all.push_back(fast_multiplication(extent, kernel, fast_words));
  return all;
}

TEST_CASE("printed formulas give the printed numbers", "[io][bounds]") {
  const KernelClass once{.evaluation = Evaluation::once, .movement = RowMovement::whole_index};
  int compared = 0;
  for (const Letters& at : {Letters{128, 96, 16, 16, 60}, Letters{256, 256, 16, 16, 300},
                            Letters{256, 200, 8, 16, 700}, Letters{300, 256, 32, 24, 512}}) {
    for (const KernelClass& kernel : {KernelClass{}, once}) {
      for (const Bound& bound : bounds_at(at, kernel)) {
        CAPTURE(bound.to_string(), at.q, at.k, at.d_k, at.d_v, at.M);
        const auto given = gives_its_number(bound, at);
        CHECK(given);
        if (!given || !bound.applies()) continue;
        CHECK(*given);
        ++compared;
      }
    }
  }
  CHECK(compared > 80);
}

TEST_CASE("a formula beside another number is seen", "[io][bounds]") {
  const Letters at{256, 256, 16, 16, 300};
  Bound older = theorem_b(dense_extent(256, 256, 16, 16), {}, 300);
  REQUIRE(older.applies());
  CHECK(gives_its_number(older, at) == true);
  older.statement = "2Z (d_k + d_v)/sqrt(M) - Z - 2M";
  CHECK(gives_its_number(older, at) == false);
  older.statement = "2Z";
  CHECK_FALSE(gives_its_number(older, at));
}

}  // namespace
}  // namespace attest::io
