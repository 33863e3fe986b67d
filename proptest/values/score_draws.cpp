#include "proptest/values/score_draws.hpp"

#include <array>
#include <type_traits>

#include "proptest/values/draws.hpp"

namespace attest::proptest {
namespace {

void draw_softcap(Problem& p, Rng& rng) {
  if (chance(rng, p.softmax_scale ? 40 : 12)) p.softcap = chance(rng, 50) ? 30.0 : 2.0;
}

bool change_softcap(Problem& p, Rng& rng) {
  const double cap = static_cast<double>(rng.between(101, 399)) / 100;
  p.softcap = p.softcap > 0 && chance(rng, 50) ? 0 : p.softcap == cap ? 2 * cap : cap;
  return true;
}

void draw_slopes(Problem& p, Rng& rng) {
  if (chance(rng, 20)) p.alibi = Alibi::standard;
}

constexpr std::int64_t kSeeds = 1000;

// Draws the values of a feature anew, where it has some.
template <auto Choice, auto Seed>
void draw_where_present(Problem& p, double /*factor*/, std::uint64_t seed) {
  using Enum = std::remove_reference_t<decltype(p.*Choice)>;
  if (p.*Choice == Enum::none) return;
  p.*Choice = Enum::drawn;
  p.*Seed = seed;
}

template <auto Choice, auto Seed>
bool change_seed(Problem& p, Rng& rng) {
  p.*Choice = std::remove_reference_t<decltype(p.*Choice)>::drawn;
  p.*Seed += static_cast<std::uint64_t>(rng.between(1, kSeeds));
  return true;
}

void draw_sinks(Problem& p, Rng& rng) {
  if (!chance(rng, 20)) return;
  p.sinks = Sinks::drawn;
  p.sinks_seed = static_cast<std::uint64_t>(rng.between(1, kSeeds));
}

constexpr std::array kDraws{
    ScoreDraw{.claim = ATTEST_SOFTCAP,
              .field = "softcap",
              .draw = draw_softcap,
              .add_digits = [](Problem& p, double factor, std::uint64_t) { p.softcap *= factor; },
              .change = change_softcap,
              .simplify = [](Problem& /*p*/) {}},
    ScoreDraw{.claim = ATTEST_ALIBI,
              .field = "slopes",
              .draw = draw_slopes,
              .add_digits = draw_where_present<&Problem::alibi, &Problem::alibi_seed>,
              .change = change_seed<&Problem::alibi, &Problem::alibi_seed>,
              .simplify =
                  [](Problem& p) {
                    if (p.alibi == Alibi::drawn) p.alibi = Alibi::standard;
                  }},
    ScoreDraw{.claim = ATTEST_SINKS,
              .field = "sinks",
              .draw = draw_sinks,
              .apart = true,
              .add_digits = draw_where_present<&Problem::sinks, &Problem::sinks_seed>,
              .change = change_seed<&Problem::sinks, &Problem::sinks_seed>,
              .simplify = [](Problem& /*p*/) {}},
};

}  // namespace

std::span<const ScoreDraw> score_draws() { return kDraws; }

}  // namespace attest::proptest
