#include "proptest/laws/level.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/dtype/dtype_range.hpp"
#include "core/features/score_features.hpp"
#include "core/numerics.hpp"
#include "core/rng.hpp"
#include "proptest/values/draws.hpp"

namespace attest::proptest {
namespace {

enum class Rows : std::uint8_t { low, high, mixed };

constexpr std::uint64_t kStream = 0x6c6576656cu;

// One level beyond each number that takes part as minus infinity or as exp's limit: exp(88.7) ends
// float32, 10^4 and 5 * 10^4 stand for infinity in public kernels.
double drawn_level(Rng& rng) {
  constexpr std::array<double, 5> kLevels{100, 400, 2000, 15000, 1e5};
  const double level = pick(rng, kLevels);  // drawn first
  return level * (0.75 + 0.25 * rng.uniform());
}

// Beyond it a score that is rounded once keeps no digit of what tells keys apart.
double highest_level(const attest_description& description, const Problem& p) {
  const Numerics numerics = resolve(description.numerics, p.dtype);
  const double roundoff =
      std::max({numerics.accumulator_roundoff, numerics.input_roundoff, numerics.scaled_q_roundoff,
                numerics.operand_roundoff, numerics.score_roundoff});
  constexpr double kLost = 0.25, kHalfProduct = 0x1p20;  // f16 ends at 2^16, a factor at 2^11
  const double by_rounding = kLost / roundoff;
  return has_narrow_range(p.dtype) ? std::min(by_rounding, kHalfProduct * std::abs(p.scale()))
                                   : by_rounding;
}

Rows drawn_rows(Rng& rng) {
  // Lanes of score 0 show below it.
  constexpr std::array<Rows, 8> kRows{Rows::low, Rows::low,  Rows::low,   Rows::low,
                                      Rows::low, Rows::high, Rows::mixed, Rows::mixed};
  return pick(rng, kRows);
}

void set_first_column(Tensor& tensor, const auto& value) {
  const TensorView& view = tensor.view();
  for (std::int64_t b = 0; b < view.extent(0); ++b) {
    for (std::int64_t s = 0; s < view.extent(1); ++s) {
      for (std::int64_t h = 0; h < view.extent(2); ++h) view.set(value(b, s, h), b, s, h, 0);
    }
  }
}

}  // namespace

Levelled at_level(const attest_description& description, const Case& c) {
  Levelled result{c.problem, {}, {}};
  Problem& p = result.problem;
  remove_features_not_additive(p);
  if (p.scale() == 0) p.softmax_scale.reset();
  result.values = make_values(p, c.values, c.seed);
  Rng rng(c.seed, kStream);
  const double level = std::min(drawn_level(rng), highest_level(description, p));
  const Rows rows = drawn_rows(rng);
  // Both factors of about one size: gradients are sums of either.
  const double product = level / std::abs(p.scale());
  const double query = std::exp2(std::round(std::log2(product) / 2));
  const double key =
      round_to(p.dtype, product / query) * (p.scale() < 0 ? -1 : 1) * (rows == Rows::high ? 1 : -1);
  set_first_column(result.values.K, [&](auto, auto, auto) { return key; });
  set_first_column(result.values.Q, [&](auto b, auto i, auto h) {
    if (rows != Rows::mixed) return query;
    const std::uint64_t bits = mix(
        mix(c.seed, kStream), static_cast<std::uint64_t>((b * p.num_heads_q + h) * (i + 1) + i));
    return std::ldexp((bits & 1u) != 0 ? -query : query, -static_cast<int>(bits / 2 % 3));
  });
  const double reached = p.scale() * query * key;
  result.words = rows == Rows::mixed ? fmt::format("scores of rows between {:.3g} and {:.3g}",
                                                   -std::abs(reached), std::abs(reached))
                                     : fmt::format("scores of every row at {:.3g}", reached);
  return result;
}

}  // namespace attest::proptest
