#include "core/mask_spellings.hpp"

#include <map>

#include "core/sparsity/sparsity_pattern.hpp"

namespace attest {
namespace {

// By the name of the family.
const std::map<std::string, std::string>& family_summaries() {
  static const std::map<std::string, std::string> all{
      {"block", "blocks of Q queries and K keys, each with that probability"},
      {"blockband", "blocks whose row and column of blocks differ by at most W"},
      {"butterfly", "blocks whose indices differ in at most one bit"},
      {"documents", "its document in one sequence; 5x2 is 5 queries and 2 keys"},
      {"rows", "every key or none, with that probability"},
      {"columns", "the same keys as all others, each drawn with that probability"},
      {"dilated", "every STEP-th key, L to the left of the aligned one and R to the right"},
      {"global", "a window, and the first G keys; the first G queries see all"},
      {"nm", "N of every M consecutive keys"},
      {"pairs", "each key with that probability, in memory of the visible pairs only"},
      {"pattern", "a .json or .safetensors file, as attest pattern --out writes"}};
  return all;
}

}  // namespace

const std::vector<MaskSpelling>& mask_spellings() {
  static const std::vector<MaskSpelling> all = [] {
    std::vector<MaskSpelling> parts{
        {"none", "none", "every key"},
        {"causal_tl", "causal_tl", "keys up to the aligned one, the first with the first query"},
        {"causal_br", "causal_br", "keys up to the aligned one, the last with the last query"},
        {"window", "window_L_R", "L keys to the left of the aligned one and R to the right"},
        {"window", "window_tl_L_R", "the same, the first key aligned with the first query"},
        {"lengths", "lengths_…", "the first so many keys of its batch entry"},
        {"cu", "cu_QxK_…", "keys of its packed sequence"},
        {"random", "random_P_SEED", "each key with probability P percent, a whole number"},
        {"file", "file_PATH", "a text file: rows of characters 0 and 1"}};
    for (const auto& family : SparsityPattern::families()) {
      parts.push_back({family.name, family.form, family_summaries().at(family.name)});
    }
    return parts;
  }();
  return all;
}

}  // namespace attest
