#include "proptest/values/score_draws.hpp"

#include <array>

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

void add_digits_to_slopes(Problem& p, double /*factor*/, std::uint64_t seed) {
  if (p.alibi == Alibi::none) return;
  p.alibi = Alibi::drawn;
  p.alibi_seed = seed;
}

bool change_slopes(Problem& p, Rng& rng) {
  constexpr std::int64_t kSeeds = 1000;
  p.alibi = Alibi::drawn;
  p.alibi_seed += static_cast<std::uint64_t>(rng.between(1, kSeeds));
  return true;
}

void draw_sinks(Problem& p, Rng& rng) {
  constexpr std::int64_t kSeeds = 1000;
  if (!chance(rng, 20)) return;
  p.sinks = Sinks::drawn;
  p.sinks_seed = static_cast<std::uint64_t>(rng.between(1, kSeeds));
}

void add_digits_to_sinks(Problem& p, double /*factor*/, std::uint64_t seed) {
  if (p.sinks == Sinks::none) return;
  p.sinks = Sinks::drawn;
  p.sinks_seed = seed;
}

bool change_sinks(Problem& p, Rng& rng) {
  constexpr std::int64_t kSeeds = 1000;
  p.sinks = Sinks::drawn;
  p.sinks_seed += static_cast<std::uint64_t>(rng.between(1, kSeeds));
  return true;
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
              .add_digits = add_digits_to_slopes,
              .change = change_slopes,
              .simplify =
                  [](Problem& p) {
                    if (p.alibi == Alibi::drawn) p.alibi = Alibi::standard;
                  }},
    ScoreDraw{.claim = ATTEST_SINKS,
              .field = "sinks",
              .draw = draw_sinks,
              .apart = true,
              .add_digits = add_digits_to_sinks,
              .change = change_sinks,
              .simplify = [](Problem& /*p*/) {}},
};

}  // namespace

std::span<const ScoreDraw> score_draws() { return kDraws; }

}  // namespace attest::proptest
