#include "io/bounds/patterns/backward_small_pattern.hpp"

#include <algorithm>
#include <cmath>

#include "io/bounds/dense/backward.hpp"
#include "io/bounds/segments.hpp"
#include "io/bounds/statement.hpp"
#include "io/bounds/weights/priced_parts.hpp"

namespace attest::io {
namespace {

double density_of(const PairDensity& density, double pairs) {
  return pairs < 1 ? 0 : density.at(pairs);
}

// The greatest sqrt(s(e_1)^2 + s(e_2)^2) with up to `most` words of pairs: between two shares e_1
// is at most the upper one and e_2 what the lower one leaves.
double greatest_of_shares(const PairDensity& density, double most) {
  constexpr int kShares = 32;
  double greatest = 0;
  for (int share = 0; share < kShares; ++share) {
    const double scores = density_of(density, rounded_up(most * (share + 1) / kShares));
    const double gradients = density_of(density, rounded_up(most * (kShares - share) / kShares));
    greatest = std::max(greatest, scores * scores + gradients * gradients);
  }
  return rounded_up(std::sqrt(greatest));
}

}  // namespace

FiveProductPrice::FiveProductPrice(const PatternComponent& component) {
  const PairDensity density = PairDensity::of_geometric_mean(component);
  // A pair has two words; beyond twice the pairs of its last entry a density does not grow.
  const PairDensity::Entry& last = density.entries().back();
  std::int64_t fewest = 1;
  while (fewest <= 2 * last.fewest) {
    constexpr std::int64_t kPerOctave = 256;
    const std::int64_t next = fewest + std::max<std::int64_t>(fewest / kPerOctave, 1);
    entries_.push_back(
        {static_cast<double>(fewest), greatest_of_shares(density, static_cast<double>(next - 1))});
    fewest = next;
  }
  entries_.push_back({static_cast<double>(fewest), rounded_up(std::sqrt(2.0) * last.density)});
}

double FiveProductPrice::work_per_word(double usable_words) const {
  double best = 0;
  for (const Entry& entry : entries_) {
    const double left = 1 - rounded_down(entry.fewest / usable_words);
    if (left <= 0) break;
    best = std::max(best, left * entry.density);
  }
  return rounded_up(best);
}

void FiveProductPrice::include(const FiveProductPrice& other) {
  const std::vector<Entry>& longer =
      entries_.size() < other.entries_.size() ? other.entries_ : entries_;
  std::vector<Entry> both(longer.size());
  for (std::size_t index = 0; index < both.size(); ++index) {
    const auto at = [index](const FiveProductPrice& price) {
      return price.entries_[std::min(index, price.entries_.size() - 1)].density;
    };
    both[index] = {longer[index].fewest, std::max(at(*this), at(other))};
  }
  entries_ = std::move(both);
}

FiveProductParts five_product_parts(const PatternDegrees& degrees) {
  return {degrees.extent, parts_of_pattern<FiveProductPart>(
                              degrees,
                              [](const PatternComponent& component) {
                                return FiveProductPart{FiveProductPrice(component),
                                                       component.pairs(), component.copies};
                              },
                              [](FiveProductPart& shared, const FiveProductPart& part) {
                                shared.price.include(part.price);
                              })};
}

Bound backward_small_pattern(const FiveProductParts& pattern, const KernelClass& kernel,
                             std::int64_t fast_words) {
  return Statement(
             "backward_small_pattern", Tag::proved,
             std::string(kernel.evaluation == Evaluation::once
                             ? "max_{X,Y} Y + X (h - 1) + 1 - 2Z, h = ceil((U(M+X) - Y)/(M+X)) >= 1"
                             : "max_X X (U(M+X) - X)/(M+X) - 2Z") +
                 ", U(B) = sum of Z (3 sqrt(3)/2 d_k + 2 d_v)/rho(B)",
             "patterns")
      .needs_class(kernel, fast_words)
      .needs_chains(kernel)
      .words([&] {
        const Memories memories = memories_of(kernel, fast_words);
        const auto d_k = static_cast<double>(pattern.extent.head_dim_qk);
        const auto d_v = static_cast<double>(pattern.extent.head_dim_v);
        PricedParts priced;
        for (const FiveProductPart& part : pattern.parts) {
          const auto pairs = static_cast<double>(part.pairs);
          priced.push_back(
              {backward_weighted_products({pairs * d_k, 2 * pairs * d_k, 2 * pairs * d_v}),
               part.copies,
               [&part](double usable_words) { return part.price.work_per_word(usable_words); }});
        }
        const double of_scores = rounded_down(best_backward_weights({1, 2, 0}).scores * d_k);
        const std::int64_t events = whole_or_parts(priced, [&](const PricedParts& parts) {
          return kernel.evaluation == Evaluation::once
                     ? greatest_words_of_parts(parts, memories)
                     : greatest_with_repetitions(parts, memories, std::min(of_scores, d_v));
        });
        return std::max<std::int64_t>((Words(events) - Words(2) * pattern.extent.pairs).value(), 0);
      });
}

}  // namespace attest::io
