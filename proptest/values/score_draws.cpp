#include "proptest/values/score_draws.hpp"

#include <array>
#include <string>
#include <type_traits>

#include "core/features/pages.hpp"
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

// The axes that it depends on, its type and whether it hides keys.
void set_bias(Problem& p, Rng& rng) {
  constexpr std::array<const char*, 10> kAxes{"bhqk", "hqk", "bhk", "bqk", "qk",
                                              "k",    "hq",  "bhq", "hk",  "bhqk"};
  const std::string axes = pick(rng, kAxes);
  const bool single = chance(rng, 40), holes = chance(rng, 35);
  p.bias = Bias::parse(axes + (single ? "_f32" : "") + (holes ? "_holes_" : "_drawn_") +
                       std::to_string(rng.between(1, kSeeds)));
}

void draw_bias(Problem& p, Rng& rng) {
  if (chance(rng, 20)) set_bias(p, rng);
}

bool change_bias(Problem& p, Rng& rng) {
  if (p.bias.kind == Bias::Kind::none) {
    set_bias(p, rng);
  } else {
    p.bias.seed += static_cast<std::uint64_t>(rng.between(1, kSeeds));
  }
  return true;
}

// Finite, then one value for all heads and batch entries.
void simplify_bias(Problem& p) {
  if (p.bias.kind == Bias::Kind::holes) {
    p.bias.kind = Bias::Kind::drawn;
  } else if (p.bias.single) {
    p.bias.single = false;
  } else if (p.bias.axes[0]) {
    p.bias.axes[0] = false;
  } else if (p.bias.axes[1]) {
    p.bias.axes[1] = false;
  }
}

// The axes that it depends on, and how much it shows.
void set_head_mask(Problem& p, Rng& rng) {
  constexpr std::array<const char*, 10> kAxes{"bhqk", "hqk", "bhk", "bqk", "bhq",
                                              "bk",   "hk",  "bhq", "qk",  "bhqk"};
  constexpr std::array<std::int64_t, 4> kPercents{30, 60, 80, 95};
  const std::string axes = pick(rng, kAxes);
  const std::int64_t percent = pick(rng, kPercents);
  p.head_mask = HeadMask::parse(axes + "_" + std::to_string(percent) + "_" +
                                std::to_string(rng.between(1, kSeeds)));
}

void draw_head_mask(Problem& p, Rng& rng) {
  if (chance(rng, 20)) set_head_mask(p, rng);
}

bool change_head_mask(Problem& p, Rng& rng) {
  if (p.head_mask.kind == HeadMask::Kind::none) {
    set_head_mask(p, rng);
  } else {
    p.head_mask.seed += static_cast<std::uint64_t>(rng.between(1, kSeeds));
  }
  return true;
}

// One mask for all heads and batch entries.
void simplify_head_mask(Problem& p) {
  if (p.head_mask.axes[0]) {
    p.head_mask.axes[0] = false;
  } else if (p.head_mask.axes[1]) {
    p.head_mask.axes[1] = false;
  }
}

void draw_query_lengths(Problem& p, Rng& rng) {
  if (!chance(rng, 15)) return;
  p.query_lengths.kind = QueryLengths::Kind::drawn;
  p.query_lengths.seed = static_cast<std::uint64_t>(rng.between(1, kSeeds));
}

bool change_query_lengths(Problem& p, Rng& rng) {
  p.query_lengths.kind = QueryLengths::Kind::drawn;
  p.query_lengths.seed += static_cast<std::uint64_t>(rng.between(1, kSeeds));
  return true;
}

void draw_pages(Problem& p, Rng& rng) {
  constexpr std::array<std::int64_t, 9> kPageSizes{1, 3, 5, 7, 8, 16, 32, 64, 256};
  const bool paged = chance(rng, 15);
  const std::int64_t size = pick(rng, kPageSizes);
  const auto order = static_cast<std::uint64_t>(rng.between(1, kSeeds));
  const bool no_page_free = chance(rng, 20);
  if (paged) p.paged_kv = {size, order, no_page_free ? 1 : 0};
}

void draw_order(Problem& p, double /*factor*/, std::uint64_t seed) {
  if (is_paged(p)) p.paged_kv.order = seed;
}

bool change_pages(Problem& p, Rng& rng) {
  if (!is_paged(p)) return false;
  constexpr std::int64_t kKinds = 3;  // of the length of the table's rows, which stays
  p.paged_kv.order += static_cast<std::uint64_t>(kKinds * rng.between(1, kSeeds));
  return true;
}

void simplify_pages(Problem& p) {
  if (is_paged(p)) p.paged_kv = {p.paged_kv.page_size, p.paged_kv.order, 0};
}

void draw_shared_kv(Problem& p, Rng& rng) {
  if (chance(rng, 15)) p.shared_kv = chance(rng, 50) ? SharedKv::first : SharedKv::last;
}

// It has no digits: other columns take their place.
void draw_other_columns(Problem& p, double /*factor*/, std::uint64_t /*seed*/) {
  if (p.shared_kv == SharedKv::none) return;
  p.shared_kv = p.shared_kv == SharedKv::first ? SharedKv::last : SharedKv::first;
}

bool change_shared_kv(Problem& p, Rng& rng) {
  const SharedKv shared = chance(rng, 50) ? SharedKv::first : SharedKv::last;
  p.shared_kv = p.shared_kv == SharedKv::none ? shared : SharedKv::none;
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
    ScoreDraw{.claim = ATTEST_BIAS,
              .field = "bias",
              .draw = draw_bias,
              .apart = true,
              .add_digits =
                  [](Problem& p, double, std::uint64_t seed) {
                    if (p.bias.kind != Bias::Kind::none) p.bias.seed = seed;
                  },
              .change = change_bias,
              .simplify = simplify_bias},
    ScoreDraw{.claim = ATTEST_HEAD_MASK,
              .field = "mask of heads",
              .draw = draw_head_mask,
              .apart = true,
              .add_digits =
                  [](Problem& p, double, std::uint64_t seed) {
                    if (p.head_mask.kind != HeadMask::Kind::none) p.head_mask.seed = seed;
                  },
              .change = change_head_mask,
              .simplify = simplify_head_mask},
    ScoreDraw{.claim = ATTEST_QUERY_LENGTHS,
              .field = "query lengths",
              .draw = draw_query_lengths,
              .apart = true,
              .add_digits =
                  [](Problem& p, double, std::uint64_t seed) {
                    if (p.query_lengths.kind != QueryLengths::Kind::none) {
                      p.query_lengths.seed = seed;
                    }
                  },
              .change = change_query_lengths,
              .simplify = [](Problem& /*p*/) {}},
    ScoreDraw{.claim = ATTEST_PAGED_KV,
              .field = "block table",
              .draw = draw_pages,
              .apart = true,
              .add_digits = draw_order,
              .change = change_pages,
              .simplify = simplify_pages},
    ScoreDraw{.claim = ATTEST_SHARED_KV,
              .field = "memory of K and V",
              .draw = draw_shared_kv,
              .apart = true,
              .add_digits = draw_other_columns,
              .change = change_shared_kv,
              .simplify = [](Problem& /*p*/) {}},
};

}  // namespace

std::span<const ScoreDraw> score_draws() { return kDraws; }

}  // namespace attest::proptest
