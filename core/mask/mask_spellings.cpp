#include "core/mask/mask_spellings.hpp"

#include <algorithm>

#include "core/mask/mask_part.hpp"
#include "core/mask/sparsity/sparsity_pattern.hpp"
#include "core/text/suggest.hpp"

namespace attest {
const std::vector<MaskSpelling>& mask_spellings() {
  static const std::vector<MaskSpelling> all = [] {
    std::vector<MaskSpelling> parts{
        {"none", "none", "none", "every key"},
        {"causal_tl", "causal_tl", "causal_tl",
         "keys up to the aligned one, the first with the first query"},
        {"causal_br", "causal_br", "causal_br",
         "keys up to the aligned one, the last with the last query"},
        {"window", "window_L_R", "window_3_inf",
         "L keys to the left of the aligned one and R to the right"},
        {"window", "window_tl_L_R", "window_tl_3_1",
         "the same, the first key aligned with the first query"},
        {"lengths", "lengths_…", "lengths_8", "the first so many keys of its batch entry"},
        {"cu", "cu_QxK_…", "cu_8x8", "keys of its packed sequence"},
        {"random", "random_P_SEED", "random_50_1",
         "each key with probability P percent, a whole number"},
        {"file", "file_PATH", "file_mine.txt", "a text file: rows of characters 0 and 1"}};
    for (const auto& family : SparsityPattern::families()) {
      parts.push_back({family.name, family.form, family.example, family.summary});
    }
    return parts;
  }();
  return all;
}

std::vector<std::string> mask_parts(std::string_view text) {
  std::vector<std::string> parts = split(text, '+');
  bool after_path = false;
  for (const std::string& part : parts) {
    const std::string word = split(part, '_').front();
    const auto& all = mask_spellings();
    const bool known = std::any_of(all.begin(), all.end(), [&](const MaskSpelling& one) {
      return one.name == part || one.name == word;
    });
    if (!known && after_path) {
      refuse_part(part, "is unknown; a path in a mask ends at '+': rename or link the file");
    }
    if (!known) refuse_unknown_part(part);
    after_path = names_path(part);
  }
  return parts;
}

void refuse_unknown_part(const std::string& part) {
  std::vector<std::string> known;
  std::string forms;
  for (const MaskSpelling& one : mask_spellings()) {
    known.push_back(one.name);
    forms += " " + one.form;
  }
  const std::string whole = did_you_mean(part, known);
  const std::string near = whole.empty() ? did_you_mean(split(part, '_').front(), known) : whole;
  refuse_part(part, "is unknown" + near + " (masks:" + forms + ")");
}

}  // namespace attest
