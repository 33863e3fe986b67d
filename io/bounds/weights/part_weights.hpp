#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "io/bounds/patterns/class_grid.hpp"
#include "io/bounds/weights/dense_parts.hpp"

namespace attest::io {

/// Forward: a row and a key take as many words, and segments use 16 classes of them, or some 10.
inline constexpr PartCosts kForwardParts{1, 1, 16, 0}, kSmallForwardParts{1, 1, 10, 0};
/// Backward: rows of q, dO and dQ, keys of k, v, dK and dV.
inline constexpr PartCosts kBackwardParts{3, 4, 40, 7};

/// Weights of the pairs of a grid of classes, the same for all pairs of two classes, and how heavy
/// its parts are: docs/theory/bounds/patterns.md, "Dense parts".
struct PartWeights {
  WeightGrid weight{};        // 0 where nothing is visible
  std::int64_t heaviest = 1;  // the greatest weight: it stands for 1
  // Proved: of full parts first, then of others, smaller ones and larger ones, as far as searches
  // are short.
  std::vector<PartLimit> limits;
};

/// Weights for which full parts are light against the whole: blocks of the heaviest parts
/// that a search finds weigh less, again and again (the multiplicative weights of Arora, Hazan and
/// Kale 2012 for a covering by parts), and a limit that is proved of them.
///
/// Ensures: nothing where the weights gain less than 5 % over full parts that are all visible, with
///          fewer than 32 classes of rows and keys together, with fewer than 3 visible pairs of
///          classes to one, or where no limit is proved within the steps
///          [io/bounds/weights/part_weights_test]
/// Cost:    some 15 s for 64 x 64 classes, a quarter of them visible; never more than 2^31 steps of
///          some 30 ns.
std::optional<PartWeights> part_weights(const ClassGrid& grid, const PartCosts& costs);

/// The classes of a problem's mask and their weights, found when first asked for.
class DenseParts {
 public:
  explicit DenseParts(Problem problem) : problem_(std::move(problem)) {}

  const std::optional<ClassGrid>& grid() const;
  const std::optional<PartWeights>& weights(const PartCosts& costs) const;

 private:
  Problem problem_;
  mutable std::once_flag looked_at_;
  mutable std::optional<ClassGrid> grid_;
  mutable std::mutex weighing_;
  mutable std::map<PartCosts, std::optional<PartWeights>> weights_;
};

}  // namespace attest::io
