#include "core/features/claim_words.hpp"

#include "core/abi/attest_kernel.h"
#include "core/features/score_features.hpp"

namespace attest {

const std::vector<std::pair<std::uint32_t, const char*>>& feature_words() {
  static const std::vector<std::pair<std::uint32_t, const char*>> table = [] {
    std::vector<std::pair<std::uint32_t, const char*>> words{
        {ATTEST_CAUSAL_TOP_LEFT, "causal_top_left"},
        {ATTEST_CAUSAL_BOTTOM_RIGHT, "causal_bottom_right"},
        {ATTEST_WINDOW, "window"},
        {ATTEST_KEY_LENGTHS, "key_lengths"},
        {ATTEST_PACKED_SEQUENCES, "packed_sequences"},
        {ATTEST_BOOLEAN_MASK, "boolean_mask"},
        {ATTEST_GQA, "gqa"},
        {ATTEST_HEAD_DIM_V, "head_dim_v"}};
    for (const ScoreFeature& feature : score_features()) {
      words.emplace_back(feature.claim, feature.word);
    }
    words.insert(words.end(), {{ATTEST_ANY_SCALE, "any_scale"},
                               {ATTEST_ANY_STRIDES, "any_strides"},
                               {ATTEST_LSE, "lse"},
                               {ATTEST_DLSE, "dlse"},
                               {ATTEST_CROSS_LENGTHS, "cross_lengths"},
                               {ATTEST_EMPTY_ROWS, "empty_rows"},
                               {ATTEST_LOSS_DY, "loss_dy"},
                               {ATTEST_BLOCK_MASK, "block_mask"},
                               {ATTEST_CSR_MASK, "csr_mask"},
                               {ATTEST_NM_MASK, "nm_mask"},
                               {ATTEST_LAYOUT_BITS, "layout_bits"},
                               {ATTEST_OFFSET_WINDOW, "offset_window"},
                               {ATTEST_BATCH_INVARIANT, "batch_invariant"},
                               {ATTEST_SPLIT_INVARIANT, "split_invariant"},
                               {ATTEST_NONFINITE, "nonfinite"}});
    return words;
  }();
  return table;
}

std::uint32_t known_features() {
  std::uint32_t known = 0;
  for (const auto& [bit, word] : feature_words()) known |= bit;
  return known;
}

}  // namespace attest
