#include "proptest/signatures/level_alternatives.hpp"

#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "proptest/signatures/deviation.hpp"

namespace attest::proptest {
namespace {

using reference::ErrorBound;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Float32's exp: from here on 0, and infinite; some way before the one it loses digits.
constexpr double kVanishes = -104, kLosesDigits = -80, kOverflows = 88.8, kSurelyFinite = 88.6;
constexpr std::array<std::int64_t, 5> kTiles{8, 16, 32, 64, 128};

void set(Expected& expected, double value, double bound, std::int64_t a, std::int64_t b,
         std::int64_t c, std::int64_t d = 0) {
  expected.value.set(value, a, b, c, d);
  for (Tensor ErrorBound::*part :
       {&ErrorBound::deterministic, &ErrorBound::probabilistic, &ErrorBound::sigma}) {
    (expected.bound.*part).set(bound, a, b, c, d);
  }
}

class LowRows {
 public:
  explicit LowRows(const Scene& scene)
      : scene_(scene),
        plain_(reference::forward(scene.problem, {}, scene.values.Q.view(), scene.values.K.view(),
                                  scene.values.V.view())) {}

  // In base e; -inf for a row without a key, which no mistake of this kind meets.
  double lse(const Sequence& sequence, std::int64_t h, std::int64_t i) const {
    return plain_.LSE(sequence.tensor_batch, h, sequence.q_begin + i);
  }

  // O and LSE where rows far below `start(sequence)` hold `lost`; nothing where there is none.
  void add(std::vector<Alternative>& list, const std::string& name, const std::string& words,
           double lost, double lost_lse,
           const std::function<double(const Sequence&)>& start) const {
    const Problem& p = scene_.problem;
    Expected O{"O", scene_.truth.forward().O, scene_.truth.forward_bounds().O},
        LSE{"LSE", scene_.truth.forward().LSE, scene_.truth.forward_bounds().LSE};
    bool any = false;
    for (const Sequence& sequence : p.sequences()) {
      for (std::int64_t h = 0; h < p.num_heads_q; ++h) {
        for (std::int64_t i = 0; i < sequence.q_length; ++i) {
          const double below = lse(sequence, h, i) - start(sequence);
          if (std::isinf(below) || below > kLosesDigits) continue;
          const bool gone = below < kVanishes;
          const std::int64_t b = sequence.tensor_batch, q = sequence.q_begin + i;
          for (std::int64_t c = 0; c < p.head_dim_v; ++c) {
            const double value = gone ? lost : O.value(b, q, h, c);
            set(O, value, gone ? 0 : kInfinity, b, q, h, c);
          }
          const bool says = gone && std::isinf(lost_lse);
          set(LSE, says ? lost_lse : LSE.value(b, h, q), says ? 0 : kInfinity, b, h, q);
          any = any || gone;
        }
      }
    }
    if (!any) return;
    list.push_back({name, "the result " + words, {O}});
    if ((scene_.description.features & ATTEST_LSE) != 0) list.back().outputs.push_back(LSE);
  }

 private:
  const Scene& scene_;
  reference::Forward plain_;
};

class LowGradients {
 public:
  explicit LowGradients(const Scene& scene) : scene_(scene), rows_(scene) {
    const reference::Backward& exact = scene.truth.backward();
    const reference::BackwardBounds& bounds = scene.truth.backward_bounds(scene.run);
    truth_ = {
        {"dQ", exact.dQ, bounds.dQ}, {"dK", exact.dK, bounds.dK}, {"dV", exact.dV, bounds.dV}};
  }

  std::vector<Alternative> take() { return std::move(list_); }

  // Zero-filled keys of the last of tiles of `tile`, unless the keys do not fill tiles of `asked`.
  void tail_keys(std::int64_t tile, std::int64_t asked) {
    std::vector<Expected> outputs = truth_;
    bool any = false;
    each_row([&](const Sequence& s, std::int64_t h, std::int64_t i, double lse) {
      if (s.visible_keys % tile == 0 || s.visible_keys % asked != 0) return;
      any = spoil(outputs[0], lse, s.tensor_batch, s.q_begin + i, h) || any;
    });
    if (!any) return;
    const std::string words =
        "where zero-filled keys of a tile of " + std::to_string(tile) + " have a weight in dQ";
    list_.push_back({"tail_key_weighted", "the gradients " + words, std::move(outputs)});
  }

  // Zero-filled queries of the last of tiles of `tile` with the last query's LSE, in whole tiles of
  // `key_tile` keys.
  void padded_queries(std::int64_t tile, std::int64_t key_tile) {
    std::vector<Expected> outputs = truth_;
    bool any = false;
    each_row([&](const Sequence& s, std::int64_t h, std::int64_t i, double lse) {
      if (i + 1 != s.q_length || s.q_length % tile == 0) return;
      const std::int64_t group = scene_.problem.group_size();
      for (std::int64_t j = 0; j < s.visible_keys / key_tile * key_tile; ++j) {
        any = spoil(outputs[1], lse, s.tensor_batch, s.k_begin + j, h / group) || any;
        spoil(outputs[2], lse, s.tensor_batch, s.k_begin + j, h / group);
      }
    });
    if (!any) return;
    const std::string words =
        "where zero-filled queries have the LSE of the last query and a weight in dK and dV";
    list_.push_back({"padded_query_weighted", "the gradients " + words, std::move(outputs)});
  }

 private:
  void each_row(
      const std::function<void(const Sequence&, std::int64_t, std::int64_t, double)>& visit) const {
    for (const Sequence& s : scene_.problem.sequences()) {
      for (std::int64_t h = 0; h < scene_.problem.num_heads_q; ++h) {
        for (std::int64_t i = 0; i < s.q_length; ++i) visit(s, h, i, rows_.lse(s, h, i));
      }
    }
  }

  // NaN, from exp(-LSE) times 0, in a row of a gradient; whether it is.
  static bool spoil(Expected& gradient, double lse, std::int64_t b, std::int64_t s,
                    std::int64_t h) {
    if (std::isinf(lse) || -lse < kSurelyFinite) return false;
    for (std::int64_t c = 0; c < gradient.value.view().extent(3); ++c) {
      const bool known = -lse > kOverflows;
      set(gradient, known ? std::nan("") : gradient.value(b, s, h, c), known ? 0 : kInfinity, b, s,
          h, c);
    }
    return -lse > kOverflows;
  }

  const Scene& scene_;
  LowRows rows_;
  std::vector<Expected> truth_;
  std::vector<Alternative> list_;
};

}  // namespace

std::vector<Alternative> low_forward_alternatives(const Scene& scene) {
  const LowRows rows(scene);
  std::vector<Alternative> list;
  // A row without weights leaves 0 / 0, or what a kernel writes for rows without a key.
  const auto add = [&](const std::string& name, const std::string& words, const auto& start) {
    constexpr double kAnything = 0;
    rows.add(list, name, words, std::nan(""), -kInfinity, start);
    rows.add(list, name, words, 0, -kInfinity, start);
    rows.add(list, name, words, 0, kAnything, start);
  };
  add("maximum_from_zero", "with a running maximum that starts at 0",
      [](const Sequence&) { return 0.0; });
  for (const std::int64_t tile : kTiles) {
    add("pads_in_maximum",
        "where zero-filled keys of a partial tile of " + std::to_string(tile) +
            " keys enter the maximum",
        [tile](const Sequence& s) { return s.visible_keys % tile == 0 ? -kInfinity : 0.0; });
  }
  for (const double sentinel : {-1e4, -5e4}) {
    const std::string number = std::to_string(static_cast<int>(sentinel));
    add("minus_infinity_" + number.substr(1), "where " + number + " stands for minus infinity",
        [sentinel](const Sequence&) { return sentinel; });
  }
  return list;
}

std::vector<Alternative> low_backward_alternatives(const Scene& scene) {
  LowGradients gradients(scene);
  constexpr std::array<std::int64_t, 5> kKeyTiles{1, 16, 32, 64, 128};
  for (const std::int64_t tile : kTiles) {
    gradients.tail_keys(tile, 1);
    gradients.tail_keys(tile, tile / 2);
    for (const std::int64_t keys : kKeyTiles) gradients.padded_queries(tile, keys);
  }
  return gradients.take();
}

}  // namespace attest::proptest
