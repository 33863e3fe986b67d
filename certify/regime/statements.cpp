#include "certify/regime/statements.hpp"

#include <limits>

namespace attest::certify {

const std::vector<Statement>& statements() {
  constexpr std::int64_t kKilobyte = 1024;
  constexpr double kAnyMore = std::numeric_limits<double>::infinity();
  using Of = Statement::Of;
  static const std::vector<Statement> all{
      {"Dao et al. 2022 (FlashAttention), section 3.2",
       "for head dimensions of 64 to 128 and a fast memory of about 100 KB, d^2 is many times "
       "smaller than M (held to four times)",
       4,
       kAnyMore,
       Of::every,
       {{"", "100 KB", 100 * kKilobyte}},
       {{64, 64}, {128, 128}}},
      {"Saha and Ye 2024, section 1 (arXiv 2402.07443v1)",
       "M >= d^2 is \"the more practical regime\" (held to head dimensions to 256 in the L1 and "
       "shared memory of GPUs since 2017)",
       1,
       kAnyMore,
       Of::every,
       {{"v100", "V100, L1 and shared memory, 128 KB", 128 * kKilobyte},
        {"a100", "A100, L1 and shared memory, 192 KB", 192 * kKilobyte},
        {"h100", "H100, L1 and shared memory, 256 KB", 256 * kKilobyte}},
       {{64, 64}, {128, 128}, {256, 256}}},
      {"the discussion of Li et al. 2024 (arXiv 2410.09397), whose wording was not found: in "
       "our words",
       "on an A100 the fast memory holds d^2 words",
       1,
       kAnyMore,
       Of::every,
       {{"a100", "A100, L1 and shared memory, 192 KB", 192 * kKilobyte},
        {"a100", "A100, registers + shared memory (K1), 420 KB", 420 * kKilobyte}},
       {{64, 64}, {128, 128}, {256, 256}}},
      {"the discussion of Li et al. 2024 (arXiv 2410.09397), whose wording was not found: in "
       "our words",
       "on a GTX 1060 the fast memory can be smaller than d^2",
       0,
       1,
       Of::some,
       {{"gtx1060", "GTX 1060, shared memory of a block, 48 KB", 48 * kKilobyte},
        {"gtx1060", "GTX 1060, registers + shared memory (K1), 352 KB", 352 * kKilobyte}},
       {{64, 64}, {128, 128}, {256, 256}}},
  };
  return all;
}

std::vector<Figure> figures(const Statement& statement) {
  std::vector<Figure> list;
  for (const Place& place : statement.places) {
    for (const auto& [head_dim_qk, head_dim_v] : statement.head_dims) {
      for (const WordType& word : word_types()) {
        Figure figure;
        figure.device = place.device;
        figure.place = place.name;
        figure.word = word.name;
        figure.head_dim_qk = head_dim_qk;
        figure.head_dim_v = head_dim_v;
        figure.size = cache_size(place.fast_bytes, word, head_dim_qk, head_dim_v);
        const bool holds =
            statement.at_least <= figure.size.ratio && figure.size.ratio < statement.below;
        figure.holds = holds ? Figure::Holds::yes : Figure::Holds::no;
        list.push_back(figure);
      }
    }
  }
  return list;
}

}  // namespace attest::certify
