#include "core/mask/sparsity/family_draws.hpp"

#include <array>

namespace attest::draws {
namespace {

// "_" and a number. Two draws never stand in one expression: compilers differ in their order.
std::string number(Rng& rng, std::int64_t low, std::int64_t high) {
  return "_" + std::to_string(rng.between(low, high));
}

std::string percent_and_seed(Rng& rng) {
  const std::string percent = number(rng, 20, 95);
  return percent + number(rng, 0, 1000);
}

std::string extent(Rng& rng) {
  constexpr std::array<std::int64_t, 11> kExtents{1, 2, 3, 4, 5, 8, 13, 16, 17, 32, 64};
  constexpr auto kLast = static_cast<std::int64_t>(kExtents.size()) - 1;
  return std::to_string(kExtents[static_cast<std::size_t>(rng.between(0, kLast))]);
}

std::string sizes(Rng& rng) {
  const std::string q = extent(rng), k = extent(rng);
  return "_" + q + "x" + k;
}

bool chance(Rng& rng, std::int64_t percent) { return rng.between(0, 99) < percent; }

}  // namespace

std::string block(Rng& rng, std::int64_t, std::int64_t) {
  const std::string size = sizes(rng);
  return "block" + size + percent_and_seed(rng);
}

std::string blockband(Rng& rng, std::int64_t, std::int64_t) {
  const std::string size = sizes(rng);
  return "blockband" + size + number(rng, 0, 2);
}

std::string butterfly(Rng& rng, std::int64_t, std::int64_t) { return "butterfly" + sizes(rng); }

// Lengths that add up to those of the sequence.
std::string documents(Rng& rng, std::int64_t rows, std::int64_t columns) {
  std::string text = "documents";
  for (std::int64_t more = rng.between(0, 3); more > 0; --more) {
    const std::int64_t q = rng.between(0, rows), k = rng.between(0, columns);
    text += "_" + std::to_string(q) + "x" + std::to_string(k);
    rows -= q;
    columns -= k;
  }
  return text + "_" + std::to_string(rows) + "x" + std::to_string(columns);
}

std::string lines(Rng& rng, std::int64_t, std::int64_t) {
  const std::string kind = chance(rng, 50) ? "rows" : "columns";
  return kind + percent_and_seed(rng);
}

std::string dilated(Rng& rng, std::int64_t, std::int64_t) {
  const std::string left = chance(rng, 20) ? "_inf" : number(rng, 0, 9);
  const std::string right = number(rng, 0, 9);
  return "dilated" + left + right + number(rng, 1, 5);
}

std::string global(Rng& rng, std::int64_t, std::int64_t) {
  const std::string keys = number(rng, 0, 4), left = number(rng, 0, 9);
  return "global" + keys + left + number(rng, 0, 9);
}

std::string nm(Rng& rng, std::int64_t, std::int64_t) {
  const std::int64_t group = rng.between(1, 8), kept = rng.between(1, group);
  return "nm_" + std::to_string(kept) + "_" + std::to_string(group) + number(rng, 0, 1000);
}

std::string pairs(Rng& rng, std::int64_t, std::int64_t) { return "pairs" + percent_and_seed(rng); }

}  // namespace attest::draws
