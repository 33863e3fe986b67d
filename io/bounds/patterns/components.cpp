#include "io/bounds/patterns/components.hpp"

#include <algorithm>
#include <vector>

#include "io/bounds/compulsory.hpp"
#include "io/bounds/dense/backward.hpp"
#include "io/bounds/dense/forward.hpp"
#include "io/bounds/statement.hpp"
#include "io/machine/words.hpp"

namespace attest::io {
namespace {

constexpr std::size_t kMostChoices = 64;

// The rows and keys of all copies of a component, and their pairs.
struct Part {
  Words rows, keys, pairs;
};

std::vector<Part> parts_of(const PatternDegrees& degrees) {
  std::vector<Part> parts;
  for (const PatternComponent& component : degrees.components) {
    const auto count = [&](const std::vector<std::int64_t>& of) {
      return Words(static_cast<std::int64_t>(of.size())) * component.copies;
    };
    parts.push_back({count(component.row_degrees), count(component.key_degrees),
                     Words(component.pairs()) * component.copies});
  }
  return parts;
}

// The best choice among those with the fewest pairs to a word first.
template <class Compulsory, class BySize>
std::int64_t best_choice(const PatternDegrees& degrees, const Compulsory& compulsory,
                         const BySize& by_size) {
  std::vector<Part> parts = parts_of(degrees);
  const auto pairs_to_a_word = [&](const Part& part) {
    return static_cast<double>(part.pairs.value()) / static_cast<double>(compulsory(part).value());
  };
  std::stable_sort(parts.begin(), parts.end(), [&](const Part& a, const Part& b) {
    return pairs_to_a_word(a) < pairs_to_a_word(b);
  });
  Extent others = degrees.extent;
  Words counted = 0, best = greatest_of_many_keys(by_size(others));
  const std::size_t step = parts.size() / (kMostChoices - 1) + 1;  // none counted is a choice too
  for (std::size_t n = 0; n < parts.size(); ++n) {
    counted += compulsory(parts[n]);
    others.pairs -= parts[n].pairs.value();
    if ((n + 1) % step != 0 && n + 1 < parts.size()) continue;
    best = std::max(best, counted + greatest_of_many_keys(by_size(others)));
  }
  return best.value();
}

Statement statement(const char* name, const KernelClass& kernel, std::int64_t fast_words) {
  Statement result(name, Tag::proved,
                   "compulsory words of small components + the greatest bound by size for the "
                   "pairs of the others",
                   "patterns");
  result.needs_class(kernel, fast_words);
  return result;
}

}  // namespace

Bound forward_components(const PatternDegrees& degrees, const KernelClass& kernel,
                         std::int64_t fast_words) {
  return statement("forward_components", kernel, fast_words).words([&] {
    const Words both = Words(degrees.extent.head_dim_qk) + degrees.extent.head_dim_v;
    // Q and O of a row, K and V of a key.
    const auto compulsory = [&](const Part& part) { return (part.rows + part.keys) * both; };
    return best_choice(degrees, compulsory, [&](const Extent& others) {
      return forward_bounds(others, kernel, fast_words);
    });
  });
}

Bound backward_components(const PatternDegrees& degrees, const KernelClass& kernel,
                          std::int64_t fast_words) {
  return statement("backward_components", kernel, fast_words).words([&] {
    const Words both = Words(degrees.extent.head_dim_qk) + degrees.extent.head_dim_v;
    // Q, dO and dQ of a row, K, V, dK and dV of a key.
    const auto compulsory = [&](const Part& part) {
      return part.rows * (both + degrees.extent.head_dim_qk) + part.keys * 2 * both;
    };
    return best_choice(degrees, compulsory, [&](const Extent& others) {
      return backward_bounds(others, kernel, fast_words);
    });
  });
}

}  // namespace attest::io
