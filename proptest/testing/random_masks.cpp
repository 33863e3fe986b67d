#include "proptest/testing/random_masks.hpp"

#include <vector>

namespace attest::proptest::testing {

std::shared_ptr<BooleanMask> mask_of(std::int64_t rows, std::int64_t columns, const Sees& sees) {
  auto mask = std::make_shared<BooleanMask>();
  mask->rows = rows;
  mask->columns = columns;
  mask->spelling = "file_mask.txt";
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) mask->visible.push_back(sees(i, j) ? 1 : 0);
  }
  return mask;
}

Sees random_blocks(Rng& rng, std::int64_t rows, std::int64_t columns, std::int64_t block,
                   std::int64_t percent) {
  const std::int64_t across = (columns + block - 1) / block;
  std::vector<char> visible(static_cast<std::size_t>((rows + block - 1) / block * across));
  for (char& entry : visible) entry = rng.between(0, 99) < percent ? 1 : 0;
  return [=](std::int64_t i, std::int64_t j) {
    return visible[static_cast<std::size_t>(i / block * across + j / block)] != 0;
  };
}

}  // namespace attest::proptest::testing
