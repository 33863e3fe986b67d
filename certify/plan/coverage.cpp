#include "certify/plan/coverage.hpp"

#include <fmt/format.h>

#include "core/dtype/dtype.hpp"
#include "proptest/judge/limits.hpp"
#include "proptest/judge/run.hpp"

namespace attest::certify {

const std::vector<std::pair<std::uint32_t, const char*>>& dtype_words() {
  static const std::vector<std::pair<std::uint32_t, const char*>> table = [] {
    std::vector<std::pair<std::uint32_t, const char*>> words;
    for (const DTypeFacts& row : kDTypes) words.emplace_back(1U << row.code, row.name.data());
    return words;
  }();
  return table;
}

const std::vector<std::pair<std::uint32_t, const char*>>& only_words() {
  static const std::vector<std::pair<std::uint32_t, const char*>> table{
      {ATTEST_ONLY_CAUSAL, "only_causal"},
      {ATTEST_ONLY_TOP_LEFT, "only_top_left"},
      {ATTEST_ONLY_BOTTOM_RIGHT, "only_bottom_right"},
      {ATTEST_ONLY_ONE_SCALE, "only_one_scale"}};
  return table;
}

const std::vector<std::pair<std::uint32_t, const char*>>& may_change_words() {
  static const std::vector<std::pair<std::uint32_t, const char*>> table{
      {ATTEST_MAY_CHANGE_LOCALE, "locale"},
      {ATTEST_MAY_CHANGE_ENVIRONMENT, "environment"},
      {ATTEST_MAY_CHANGE_SIGNALS, "signals"},
      {ATTEST_MAY_START_PROCESSES, "processes"}};
  return table;
}

namespace {

void add_extents(const char* name, const attest_extents& extents, std::vector<std::string>& words) {
  if (extents.least > 0 && extents.least == extents.most) {
    words.push_back(fmt::format("{}={}", name, extents.least));
    return;
  }
  if (extents.least > 0) words.push_back(fmt::format("{}>={}", name, extents.least));
  if (extents.most > 0) words.push_back(fmt::format("{}<={}", name, extents.most));
  if (extents.multiple > 1) words.push_back(fmt::format("{}%{}", name, extents.multiple));
}

}  // namespace

std::vector<std::string> limit_words(const attest_description& d) {
  if (d.limits == nullptr) return {};
  const attest_limits& limits = *d.limits;
  std::vector<std::string> words = words_of(limits.only, only_words());
  if (limits.softmax_scale != 0) words.push_back(fmt::format("scale={}", limits.softmax_scale));
  add_extents("seqlen_q", limits.seqlen_q, words);
  add_extents("seqlen_k", limits.seqlen_k, words);
  add_extents("head_dim", limits.head_dim, words);
  const std::vector<std::int64_t> dims = proptest::listed_head_dims(d);
  if (!dims.empty()) words.push_back(fmt::format("head_dim={}", fmt::join(dims, "|")));
  add_extents("num_heads_q", {0, limits.most_heads_q, 0}, words);
  add_extents("batch", {0, limits.most_batch, 0}, words);
  return words;
}

namespace {

constexpr std::uint32_t kMaskForms =
    ATTEST_BOOLEAN_MASK | ATTEST_BLOCK_MASK | ATTEST_CSR_MASK | ATTEST_NM_MASK;

}  // namespace

std::vector<std::string> words_of(std::uint32_t bits,
                                  const std::vector<std::pair<std::uint32_t, const char*>>& table) {
  std::vector<std::string> words;
  for (const auto& [bit, word] : table) {
    if ((bits & bit) != 0) words.emplace_back(word);
  }
  return words;
}

std::vector<std::string> exercised_by(const Problem& problem, std::uint32_t features) {
  attest_description everything{};
  everything.directions = ATTEST_FORWARD | ATTEST_BACKWARD;
  everything.dtypes = ~0u;
  std::vector<std::string> words{std::string(name(problem.dtype))};
  // A problem uses a feature exactly when a kernel with all others is not asked to run it.
  const std::uint32_t form =
      problem.mask.boolean ? mask_form(problem.mask.sparsity(), features) : 0;
  for (const auto& [bit, word] : feature_words()) {
    // The pairs of a mask come in one of several forms, which the kernel's claims choose.
    everything.features = (bit & kMaskForms) == 0 ? ~bit : bit == form ? ~kMaskForms : ~0u;
    if (!proptest::unclaimed(everything, problem, Direction::forward).empty()) {
      words.emplace_back(word);
    }
  }
  return words;
}

}  // namespace attest::certify
