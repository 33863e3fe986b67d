#include "proptest/values/draw_pairs.hpp"

#include <array>

#include "proptest/values/draws.hpp"

namespace attest::proptest {
namespace {

// "_" and a number. Two draws never stand in one expression: compilers differ in their order.
std::string number(Rng& rng, std::int64_t low, std::int64_t high) {
  return "_" + std::to_string(rng.between(low, high));
}

std::string percent_and_seed(Rng& rng) {
  const std::string percent = number(rng, 20, 95);
  return percent + number(rng, 0, 1000);
}

std::string block(Rng& rng) {
  constexpr std::array<std::int64_t, 11> kExtents{1, 2, 3, 4, 5, 8, 13, 16, 17, 32, 64};
  const std::int64_t q = pick(rng, kExtents), k = pick(rng, kExtents);
  return "_" + std::to_string(q) + "x" + std::to_string(k);
}

std::string random_blocks(Rng& rng) {
  const std::string size = block(rng);
  return "block" + size + percent_and_seed(rng);
}

std::string block_band(Rng& rng) {
  const std::string size = block(rng);
  return "blockband" + size + number(rng, 0, 2);
}

// Lengths that add up to those of the sequence.
std::string documents(Rng& rng, const Problem& problem) {
  std::string text = "documents";
  std::int64_t queries = problem.seqlen_q, keys = problem.seqlen_k;
  for (std::int64_t more = rng.between(0, 3); more > 0; --more) {
    const std::int64_t q = rng.between(0, queries), k = rng.between(0, keys);
    text += "_" + std::to_string(q) + "x" + std::to_string(k);
    queries -= q;
    keys -= k;
  }
  return text + "_" + std::to_string(queries) + "x" + std::to_string(keys);
}

std::string lines(Rng& rng) {
  const std::string kind = chance(rng, 50) ? "rows" : "columns";
  return kind + percent_and_seed(rng);
}

std::string dilated(Rng& rng) {
  const std::string left = chance(rng, 20) ? "_inf" : number(rng, 0, 9);
  const std::string right = number(rng, 0, 9);
  return "dilated" + left + right + number(rng, 1, 5);
}

std::string global_window(Rng& rng) {
  const std::string global = number(rng, 0, 4), left = number(rng, 0, 9);
  return "global" + global + left + number(rng, 0, 9);
}

std::string n_of_m(Rng& rng) {
  const std::int64_t group = rng.between(1, 8), kept = rng.between(1, group);
  return "nm_" + std::to_string(kept) + "_" + std::to_string(group) + number(rng, 0, 1000);
}

// Draws a family; families with a form of their own have more than one turn.
std::string sparsity(Rng& rng, const Problem& problem) {
  switch (rng.between(0, 10)) {
    case 0:
    case 1:
      return random_blocks(rng);
    case 2:
      return block_band(rng);
    case 3:
      return "butterfly" + block(rng);
    case 4:
      return documents(rng, problem);
    case 5:
      return lines(rng);
    case 6:
      return dilated(rng);
    case 7:
      return global_window(rng);
    case 8:
    case 9:
      return n_of_m(rng);
    default:
      return "pairs" + percent_and_seed(rng);
  }
}

}  // namespace

bool claims_lists(const attest_description& description) {
  return (description.features & (ATTEST_BLOCK_MASK | ATTEST_CSR_MASK | ATTEST_NM_MASK)) != 0;
}

std::string draw_pairs(Rng& rng, const attest_description& description, const Problem& problem) {
  const std::int64_t often = claims_lists(description) ? 80 : 50;
  if (chance(rng, often)) return sparsity(rng, problem);
  const std::int64_t percent = rng.between(20, 95), seed = rng.between(0, 1000);
  return "random_" + std::to_string(percent) + "_" + std::to_string(seed);
}

}  // namespace attest::proptest
