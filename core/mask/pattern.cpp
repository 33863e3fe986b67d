#include "core/mask/pattern.hpp"

#include <algorithm>
#include <charconv>

#include "core/error.hpp"
#include "core/files/regular_file.hpp"
#include "core/mask/mask_part.hpp"
#include "core/mask/mask_spellings.hpp"
#include "core/mask/sparsity/sparsity_pattern.hpp"
#include "core/rng.hpp"

namespace attest {
namespace {

constexpr std::int64_t kLargestWindow = std::int64_t{1} << 62;

// A width, kUnbounded for `inf`.
std::int64_t parse_end(std::string_view part, std::string_view text) {
  if (text == "inf") return Pattern::kUnbounded;
  std::int64_t width = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), width);
  if (error != std::errc() || end != text.data() + text.size() || width < -kLargestWindow ||
      width > kLargestWindow) {
    refuse_part(part, "needs inf or an integer from -2^62 to 2^62 where '" + std::string(text) +
                          "' stands");
  }
  return width;
}

std::string spell_end(bool bounded, std::int64_t width) {
  return bounded ? std::to_string(width) : "inf";
}

void parse_band(std::string_view part, const std::vector<std::string>& words, Pattern& pattern) {
  if (pattern.banded()) refuse_part(part, "is a second window or causal mask; give only one");
  const bool top_left = words.size() == 4 && words[1] == "tl";
  if (words.size() != (top_left ? 4u : 3u)) refuse_part(part, "is not window_L_R or window_tl_L_R");
  pattern.align = top_left ? CausalAlign::top_left : CausalAlign::bottom_right;
  const std::int64_t left = parse_end(part, words[words.size() - 2]),
                     right = parse_end(part, words[words.size() - 1]);
  pattern.set_window(left, right);
  if (!pattern.banded()) pattern.align = CausalAlign::top_left;
}

void parse_packed_sequences(std::string_view part, const std::vector<std::string>& words,
                            Pattern& pattern) {
  pattern.cu_seqlens_q = {0};
  pattern.cu_seqlens_k = {0};
  for (std::size_t index = 1; index < words.size(); ++index) {
    const auto pair = split(words[index], 'x');
    if (pair.size() != 2) refuse_part(part, "is not cu_QxK_QxK…: queries x keys of every sequence");
    const std::int64_t q = pattern.cu_seqlens_q.back() + parse_integer(part, pair[0], kLargest32);
    const std::int64_t k = pattern.cu_seqlens_k.back() + parse_integer(part, pair[1], kLargest32);
    if (q > kLargest32 || k > kLargest32) refuse_part(part, "has more than 2^31 - 1 tokens in all");
    pattern.cu_seqlens_q.push_back(static_cast<std::int32_t>(q));
    pattern.cu_seqlens_k.push_back(static_cast<std::int32_t>(k));
  }
}

std::shared_ptr<const BooleanMask> random_mask(std::string_view part, std::int64_t percent,
                                               std::int64_t seed, std::int64_t rows,
                                               std::int64_t columns) {
  require_mask_size(part, rows, columns);
  auto mask = std::make_shared<BooleanMask>();
  mask->rows = rows;
  mask->columns = columns;
  mask->spelling = "random_" + std::to_string(percent) + "_" + std::to_string(seed);
  mask->visible.resize(static_cast<std::size_t>(rows * columns));
  Rng rng(static_cast<std::uint64_t>(seed), 0x6d61736bu);
  for (auto& visible : mask->visible) {
    visible = rng.between(0, 99) < percent ? std::uint8_t{1} : std::uint8_t{0};
  }
  return mask;
}

// One line without its end, which is LF or CR LF (the last may lack LF), at most two characters
// longer than `columns`; false at the end of the file.
bool read_row(std::istream& file, std::int64_t columns, std::string& line) {
  line.clear();
  char c = 0;
  while (c != '\n' && static_cast<std::int64_t>(line.size()) <= columns + 1 && file.get(c)) {
    if (c != '\n') line.push_back(c);
  }
  const bool found = c == '\n' || !line.empty();
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return found;
}

std::shared_ptr<const BooleanMask> file_mask(const std::string& path, std::int64_t rows,
                                             std::int64_t columns) {
  std::ifstream file = open_regular_file("mask", path, "a text file");
  auto mask = std::make_shared<BooleanMask>();
  mask->rows = rows;
  mask->columns = columns;
  mask->spelling = "file_" + path;
  std::string line;
  std::int64_t row = 0;
  while (row <= rows && read_row(file, columns, line)) {
    const auto size = static_cast<std::int64_t>(line.size());
    const std::size_t odd = line.find_first_not_of("01");
    if (size == columns && odd != std::string::npos) {
      throw InvalidProblem("mask file '" + path + "': row " + std::to_string(row) + ", character " +
                           std::to_string(odd) + ": '" + line.substr(odd, 1) +
                           "' is neither 0 nor 1");
    }
    if (size != columns) {
      throw InvalidProblem(
          "mask file '" + path + "': row " + std::to_string(row) + " has " +
          (size > columns ? "more than " + std::to_string(columns) : std::to_string(size)) +
          " characters; it needs seqlen_k=" + std::to_string(columns));
    }
    for (const char c : line) mask->visible.push_back(c == '1' ? 1 : 0);
    ++row;
  }
  if (row != rows) {
    throw InvalidProblem("mask file '" + path + "': " +
                         (row > rows ? "more than " + std::to_string(rows) : std::to_string(row)) +
                         " rows; it needs seqlen_q=" + std::to_string(rows));
  }
  return mask;
}

bool is_sparsity_pattern(const std::string& word) {
  const auto& families = SparsityPattern::families();
  return std::any_of(families.begin(), families.end(),
                     [&](const auto& family) { return family.name == word; });
}

void parse_part(const std::string& part, std::int64_t seqlen_q, std::int64_t seqlen_k,
                Pattern& pattern) {
  const auto words = split(part, '_');
  if (part == "none") {
    refuse_part(part, "cannot be combined with other parts; leave it out");
  } else if (part == "causal_tl") {
    parse_band(part, {"window", "tl", "inf", "0"}, pattern);
  } else if (part == "causal_br") {
    parse_band(part, {"window", "inf", "0"}, pattern);
  } else if (words[0] == "window") {
    parse_band(part, words, pattern);
  } else if (words[0] == "lengths" && words.size() > 1) {
    if (!pattern.key_lengths.empty()) refuse_part(part, "is a second list of key lengths");
    for (std::size_t index = 1; index < words.size(); ++index) {
      pattern.key_lengths.push_back(
          static_cast<std::int32_t>(parse_integer(part, words[index], kLargest32)));
    }
  } else if (words[0] == "cu" && words.size() > 1) {
    if (pattern.packed()) refuse_part(part, "is a second list of packed sequences");
    parse_packed_sequences(part, words, pattern);
  } else if (words[0] == "random") {
    if (words.size() != 3) refuse_part(part, "is not random_PERCENT_SEED");
    if (pattern.boolean) refuse_part(part, "is a second boolean mask; give only one");
    pattern.boolean = random_mask(part, parse_integer(part, words[1], 100),
                                  parse_integer(part, words[2], kLargest32), seqlen_q, seqlen_k);
  } else if (words[0] == "file") {
    if (pattern.boolean) refuse_part(part, "is a second boolean mask; give only one");
    pattern.boolean =
        file_mask(part.substr(std::min<std::size_t>(part.size(), 5)), seqlen_q, seqlen_k);
  } else if (is_sparsity_pattern(words[0])) {
    if (pattern.boolean) refuse_part(part, "is a second boolean mask; give only one");
    require_mask_size(part, seqlen_q, seqlen_k);
    pattern.boolean = mask_of(SparsityPattern::parse(part, seqlen_q, seqlen_k));
  } else {
    refuse_unknown_part(part);
  }
}

}  // namespace

void require_mask_size(std::string_view part, std::int64_t rows, std::int64_t columns) {
  // Bounds, counts and the boolean form go through rows and keys one by one, whatever they see.
  constexpr std::int64_t kLongest = std::int64_t{1} << 24, kLargestMask = std::int64_t{1} << 31;
  if (rows > kLongest || columns > kLongest) {
    refuse_part(part, "would have " + std::to_string(rows) + " queries and " +
                          std::to_string(columns) +
                          " keys; masks of pairs are limited to 2^24 of each");
  }
  if (columns > 0 && rows > kLargestMask / columns) {
    refuse_part(part, "would need " + std::to_string(rows) + " x " + std::to_string(columns) +
                          " entries; boolean masks are limited to 2^31");
  }
}

std::shared_ptr<const BooleanMask> mask_of(SparsityPattern pattern) {
  require_mask_size(pattern.spelling(), pattern.rows(), pattern.columns());
  auto mask = std::make_shared<BooleanMask>();
  mask->rows = pattern.rows();
  mask->columns = pattern.columns();
  mask->visible = pattern.to_boolean();
  mask->spelling = pattern.spelling();
  mask->sparsity = std::make_shared<const SparsityPattern>(std::move(pattern));
  return mask;
}

void Pattern::set_window(std::int64_t left, std::int64_t right) {
  const auto beyond = [](std::int64_t width) { return width < 0 && width != kUnbounded; };
  offset = beyond(left) || beyond(right);
  const auto held = [this](std::int64_t width) {
    return !offset && width == kUnbounded ? -1 : width;
  };
  window_left = held(left);
  window_right = held(right);
}

std::int64_t Pattern::aligned_key(const Sequence& sequence, std::int64_t i) const {
  return align == CausalAlign::top_left ? i : i + sequence.visible_keys - sequence.queries();
}

KeyRange Pattern::band(const Sequence& sequence, std::int64_t i) const {
  const std::int64_t aligned = aligned_key(sequence, i);
  const std::int64_t keys = sequence.visible_keys;
  // Widths beyond the sequence are cut first, so that nothing overflows.
  const std::int64_t reach = sequence.q_length + sequence.k_length + 1;
  if (i >= sequence.queries()) return {0, 0};
  KeyRange range{0, keys};
  if (left_bounded()) {
    range.begin = std::max(range.begin, aligned - std::clamp(window_left, -reach, reach));
  }
  if (right_bounded()) {
    range.end = std::min(range.end, aligned + std::clamp(window_right, -reach, reach) + 1);
  }
  range.begin = std::min(range.begin, keys);
  range.end = std::max(range.end, range.begin);
  return range;
}

bool Pattern::visible(const Sequence& sequence, std::int64_t i, std::int64_t j) const {
  const KeyRange range = band(sequence, i);
  if (j < range.begin || j >= range.end) return false;
  return !boolean || boolean->visible[static_cast<std::size_t>(i * boolean->columns + j)] != 0;
}

std::string Pattern::to_string() const {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : "+") + part; };
  if (packed()) {
    std::string part = "cu";
    for (std::size_t b = 0; b + 1 < cu_seqlens_q.size(); ++b) {
      part += "_" + std::to_string(cu_seqlens_q[b + 1] - cu_seqlens_q[b]) + "x" +
              std::to_string(cu_seqlens_k[b + 1] - cu_seqlens_k[b]);
    }
    add(part);
  }
  if (!key_lengths.empty()) {
    std::string part = "lengths";
    for (const std::int32_t length : key_lengths) part += "_" + std::to_string(length);
    add(part);
  }
  if (banded()) {
    const bool top_left = align == CausalAlign::top_left;
    if (!left_bounded() && window_right == 0) {
      add(top_left ? "causal_tl" : "causal_br");
    } else {
      add((top_left ? "window_tl_" : "window_") + spell_end(left_bounded(), window_left) + "_" +
          spell_end(right_bounded(), window_right));
    }
  }
  if (boolean) add(boolean->spelling);
  return text.empty() ? "none" : text;
}

Pattern Pattern::parse(std::string_view text, std::int64_t seqlen_q, std::int64_t seqlen_k) {
  Pattern pattern;
  if (text == "none") return pattern;
  for (const std::string& part : mask_parts(text)) parse_part(part, seqlen_q, seqlen_k, pattern);
  return pattern;
}

Pattern Pattern::parse_packed(std::string_view text) {
  Pattern pattern;
  for (const std::string& part : mask_parts(text)) {
    if (part.rfind("cu_", 0) == 0) parse_packed_sequences(part, split(part, '_'), pattern);
  }
  return pattern;
}

}  // namespace attest
