// The spellings of SparsityPattern.
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>

#include "core/error.hpp"
#include "core/mask/mask_part.hpp"
#include "core/mask/sparsity/blocks_of.hpp"
#include "core/mask/sparsity/family_draws.hpp"
#include "core/mask/sparsity/pattern_file.hpp"
#include "core/mask/sparsity/sparsity_pattern.hpp"
#include "core/rng.hpp"
#include "core/text/suggest.hpp"

namespace attest {
namespace {

// One spelling and the shape it is wanted for.
struct Request {
  std::string part;
  std::vector<std::string> words;
  std::int64_t rows, columns;

  std::int64_t integer(std::size_t word, std::int64_t limit = kLargest32) const {
    return parse_integer(part, words[word], limit);
  }
  std::int64_t width(std::size_t word) const { return parse_width(part, words[word], kLargest32); }
  [[noreturn]] void refuse(const std::string& why) const { refuse_part(part, why); }
};

std::string spell(std::initializer_list<std::string> words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : "_") + word;
  return text;
}

// "64x32", or "64" for both.
struct Extents {
  std::int64_t q = 0, k = 0;
};

Extents parse_extents(const Request& request, std::string_view word, std::int64_t least) {
  const auto sizes = split(word, 'x');
  if (sizes.size() > 2) request.refuse("has a size '" + std::string(word) + "' that is not QxK");
  const Extents extents{parse_integer(request.part, sizes.front(), kLargest32),
                        parse_integer(request.part, sizes.back(), kLargest32)};
  if (extents.q < least || extents.k < least) {
    request.refuse("needs sizes of at least " + std::to_string(least));
  }
  return extents;
}

std::string spell(const Extents& extents) {
  return std::to_string(extents.q) + "x" + std::to_string(extents.k);
}

struct Percent {
  double value = 0;
  std::string spelling;
};

Percent parse_percent(const Request& request, const std::string& word) {
  Percent percent;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), percent.value,
                                            std::chars_format::fixed);
  const bool number = error == std::errc() && end == word.data() + word.size();
  if (!number || !(percent.value == 0 || (percent.value >= 0.01 && percent.value <= 100))) {
    request.refuse("needs a percentage, 0 or from 0.01 to 100, where '" + word + "' stands");
  }
  percent.value += 0.0;  // -0 becomes 0
  std::array<char, 32> digits{};
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), percent.value,
                                     std::chars_format::fixed);
  percent.spelling.assign(digits.data(), written.ptr);
  return percent;
}

void require_entries(const Request& request, double count) {
  constexpr double kMost = 1 << 29;
  if (count > kMost) {
    request.refuse("needs more than 2^29 stored indices; take larger blocks or fewer pairs");
  }
}

// Every cell of a grid with the probability: gaps between cells are geometric, by a table of the
// probability that a gap is at least g, so that bits depend on no libm and time on what is drawn.
CsrForm draw_cells(const Request& request, std::int64_t rows, std::int64_t columns,
                   const Percent& percent, std::int64_t seed) {
  const std::int64_t cells = rows * columns;
  require_entries(request, static_cast<double>(cells) * percent.value / 100);
  std::vector<double> at_least;  // gaps 1, 2, …
  for (double p = 1 - percent.value / 100; p >= 0x1p-53 && p < 1; p *= 1 - percent.value / 100) {
    at_least.push_back(p);
  }
  constexpr std::uint64_t kStream = 0x70617473u;
  Rng rng(static_cast<std::uint64_t>(seed), kStream);
  const auto gap = [&] {
    const double u = rng.uniform();
    const auto longer =
        std::partition_point(at_least.begin(), at_least.end(), [u](double p) { return u < p; });
    return longer - at_least.begin();
  };
  CsrForm drawn;
  drawn.row_offsets.assign(static_cast<std::size_t>(rows + 1), 0);
  for (std::int64_t cell = percent.value == 0 ? cells : gap(); cell < cells; cell += 1 + gap()) {
    ++drawn.row_offsets[static_cast<std::size_t>(cell / columns + 1)];
    drawn.columns.push_back(static_cast<std::int32_t>(cell % columns));
  }
  for (std::size_t i = 1; i < drawn.row_offsets.size(); ++i) {
    drawn.row_offsets[i] += drawn.row_offsets[i - 1];
  }
  return drawn;
}

// Rows one after another; ranges that touch are one.
class RangeRows {
 public:
  explicit RangeRows(std::int64_t columns) : columns_(columns) {}

  // Keys begin .. end-1, cut at both edges and at what the row has already.
  void add(std::int64_t begin, std::int64_t end) {
    begin = std::max(begin, last_);
    end = std::min(end, columns_);
    if (begin >= end) return;
    const bool joins =
        begin == last_ && form_.row_offsets.back() < static_cast<std::int64_t>(form_.ranges.size());
    if (joins) {
      form_.ranges.back().end = end;
    } else {
      form_.ranges.push_back({begin, end});
    }
    last_ = end;
  }
  void end_row() {
    form_.row_offsets.push_back(static_cast<std::int64_t>(form_.ranges.size()));
    last_ = 0;
  }
  RangeForm take() { return std::move(form_); }

 private:
  std::int64_t columns_, last_ = 0;
  RangeForm form_;
};

SparsityPattern made(const Request& request, SparsityPattern::Form form, std::string spelling) {
  return {request.rows, request.columns, std::move(form), std::move(spelling)};
}

SparsityPattern random_blocks(const Request& request) {
  const Extents block = parse_extents(request, request.words[1], 1);
  const Percent percent = parse_percent(request, request.words[2]);
  const std::int64_t seed = request.integer(3);
  CsrForm occupied = draw_cells(request, blocks_of(request.rows, block.q),
                                blocks_of(request.columns, block.k), percent, seed);
  return made(request, BlockForm{block.q, block.k, std::move(occupied)},
              spell({"block", spell(block), percent.spelling, std::to_string(seed)}));
}

SparsityPattern block_band(const Request& request) {
  const Extents block = parse_extents(request, request.words[1], 1);
  const std::int64_t width = request.integer(2);
  const std::int64_t rows = blocks_of(request.rows, block.q);
  const std::int64_t columns = blocks_of(request.columns, block.k);
  require_entries(
      request, static_cast<double>(std::min(2 * width + 1, columns)) * static_cast<double>(rows));
  CsrForm occupied;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (auto c = std::max<std::int64_t>(r - width, 0); c < std::min(r + width + 1, columns); ++c) {
      occupied.columns.push_back(static_cast<std::int32_t>(c));
    }
    occupied.row_offsets.push_back(static_cast<std::int64_t>(occupied.columns.size()));
  }
  return made(request, BlockForm{block.q, block.k, std::move(occupied)},
              spell({"blockband", spell(block), std::to_string(width)}));
}

SparsityPattern butterfly(const Request& request) {
  const Extents block = parse_extents(request, request.words[1], 1);
  const std::int64_t rows = blocks_of(request.rows, block.q);
  const std::int64_t columns = blocks_of(request.columns, block.k);
  const auto size = std::bit_ceil(static_cast<std::uint64_t>(std::max(rows, columns)));
  require_entries(request, static_cast<double>(rows) * static_cast<double>(std::bit_width(size)));
  CsrForm occupied;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::vector<std::int64_t> row{r};
    for (std::uint64_t bit = 1; bit < size; bit *= 2)
      row.push_back(r ^ static_cast<std::int64_t>(bit));
    std::sort(row.begin(), row.end());
    for (const std::int64_t c : row) {
      if (c < columns) occupied.columns.push_back(static_cast<std::int32_t>(c));
    }
    occupied.row_offsets.push_back(static_cast<std::int64_t>(occupied.columns.size()));
  }
  return made(request, BlockForm{block.q, block.k, std::move(occupied)},
              spell({"butterfly", spell(block)}));
}

SparsityPattern documents(const Request& request) {
  RangeRows rows(request.columns);
  std::string spelling = "documents";
  std::int64_t q = 0, k = 0;
  for (std::size_t word = 1; word < request.words.size(); ++word) {
    const Extents document = parse_extents(request, request.words[word], 0);
    spelling += "_" + (document.q == document.k ? std::to_string(document.q) : spell(document));
    q += document.q;
    if (q > request.rows) break;
    for (std::int64_t i = 0; i < document.q; ++i) {
      rows.add(k, k + document.k);
      rows.end_row();
    }
    k += document.k;
  }
  if (q != request.rows || k != request.columns) {
    request.refuse("has documents of " +
                   (q > request.rows ? "more than " + std::to_string(request.rows) + " queries"
                                     : spell({q, k}) + " queries x keys") +
                   " in all, but seqlen_q x seqlen_k is " + spell({request.rows, request.columns}));
  }
  return made(request, rows.take(), std::move(spelling));
}

// Whole rows or whole columns.
SparsityPattern lines(const Request& request) {
  const Percent percent = parse_percent(request, request.words[1]);
  const std::int64_t seed = request.integer(2);
  const bool whole_rows = request.words[0] == "rows";
  const CsrForm drawn =
      draw_cells(request, 1, whole_rows ? request.rows : request.columns, percent, seed);
  RangeRows rows(request.columns);
  if (!whole_rows) {
    require_entries(request,
                    static_cast<double>(drawn.columns.size()) * static_cast<double>(request.rows));
  }
  for (std::int64_t i = 0; i < request.rows; ++i) {
    if (whole_rows) {
      if (std::binary_search(drawn.columns.begin(), drawn.columns.end(), i)) {
        rows.add(0, request.columns);
      }
    } else {
      for (const std::int64_t j : drawn.columns) rows.add(j, j + 1);
    }
    rows.end_row();
  }
  return made(request, rows.take(),
              spell({request.words[0], percent.spelling, std::to_string(seed)}));
}

// Widths beyond every key are cut first, so that nothing overflows.
std::int64_t reach(const Request& request, std::int64_t width) {
  const std::int64_t most = request.rows + request.columns;
  return width < 0 ? most : std::min(width, most);
}

SparsityPattern dilated(const Request& request) {
  const std::int64_t left = request.width(1), right = request.width(2), step = request.integer(3);
  if (step < 1) request.refuse("needs a step of at least 1");
  const double keys = static_cast<double>(reach(request, left) + reach(request, right) + 1);
  const std::int64_t places = request.columns / step + 1;
  require_entries(request,
                  std::min(keys, static_cast<double>(places)) * static_cast<double>(request.rows));
  CsrForm csr;
  for (std::int64_t i = 0; i < request.rows; ++i) {
    const std::int64_t aligned = i + request.columns - request.rows;
    std::int64_t first = aligned - reach(request, left) * step;
    if (first < 0) first += blocks_of(-first, step) * step;
    const std::int64_t last = std::min(aligned + reach(request, right) * step, request.columns - 1);
    for (std::int64_t j = first; j <= last; j += step) {
      csr.columns.push_back(static_cast<std::int32_t>(j));
    }
    csr.row_offsets.push_back(static_cast<std::int64_t>(csr.columns.size()));
  }
  return made(request, std::move(csr),
              spell({"dilated", spell_width(left), spell_width(right), std::to_string(step)}));
}

SparsityPattern global_window(const Request& request) {
  const std::int64_t global = request.integer(1), left = request.width(2), right = request.width(3);
  RangeRows rows(request.columns);
  for (std::int64_t i = 0; i < request.rows; ++i) {
    const std::int64_t aligned = i + request.columns - request.rows;
    rows.add(0, i < global ? request.columns : global);
    rows.add(aligned - reach(request, left), aligned + reach(request, right) + 1);
    rows.end_row();
  }
  return made(request, rows.take(),
              spell({"global", std::to_string(global), spell_width(left), spell_width(right)}));
}

SparsityPattern n_of_m(const Request& request) {
  constexpr std::int64_t kMostGroup = 256;
  const std::int64_t kept = request.integer(1, kMostGroup), group = request.integer(2, kMostGroup);
  const std::int64_t seed = request.integer(3);
  if (kept < 1 || kept > group) request.refuse("needs N of every M keys with 1 <= N <= M <= 256");
  const std::int64_t groups = request.rows * blocks_of(request.columns, group);
  require_entries(request, static_cast<double>(groups) * static_cast<double>(kept));
  constexpr std::uint64_t kStream = 0x6e6d6b73u;
  Rng rng(static_cast<std::uint64_t>(seed), kStream);
  NmForm form{kept, group, {}};
  form.offsets.reserve(static_cast<std::size_t>(groups * kept));
  for (std::int64_t g = 0; g < groups; ++g) {
    std::int64_t missing = kept;  // each key with the probability that leaves N of M
    for (std::int64_t key = 0; key < group; ++key) {
      if (rng.between(0, group - key - 1) >= missing) continue;
      form.offsets.push_back(static_cast<std::uint8_t>(key));
      --missing;
    }
  }
  return made(request, std::move(form),
              spell({"nm", std::to_string(kept), std::to_string(group), std::to_string(seed)}));
}

SparsityPattern random_pairs(const Request& request) {
  const Percent percent = parse_percent(request, request.words[1]);
  const std::int64_t seed = request.integer(2);
  return made(request, draw_cells(request, request.rows, request.columns, percent, seed),
              spell({"pairs", percent.spelling, std::to_string(seed)}));
}

SparsityPattern from_file(const Request& request) {
  const std::string path = request.part.substr(std::min<std::size_t>(request.part.size(), 8));
  return read_pattern_file(path, PatternShape{request.rows, request.columns});
}

using Draw = std::string (*)(Rng& rng, std::int64_t rows, std::int64_t columns);

// All that is known of a family; of `turns` of generated patterns it is drawn in so many.
struct Spelling {
  SparsityPattern::Family family;
  std::size_t least_words, most_words;
  SparsityPattern (*build)(const Request&);
  Draw draw = nullptr;
  std::int64_t turns = 0;
};

// Families with a form of their own have more than one turn; columns are drawn with rows.
const std::vector<Spelling>& spellings() {
  constexpr std::size_t kAny = ~std::size_t{0};
  static const std::vector<Spelling> all{
      {{"block", "block_QxK_PERCENT_SEED", "block_2x4_50_1",
        "blocks of Q queries and K keys, each with that probability"},
       4,
       4,
       random_blocks,
       draws::block,
       2},
      {{"blockband", "blockband_QxK_W", "blockband_2x4_1",
        "blocks whose row and column of blocks differ by at most W"},
       3,
       3,
       block_band,
       draws::blockband,
       1},
      {{"butterfly", "butterfly_QxK", "butterfly_2x4",
        "blocks whose indices differ in at most one bit"},
       2,
       2,
       butterfly,
       draws::butterfly,
       1},
      {{"documents", "documents_5_7_3", "documents_5_3",
        "its document in one sequence; 5x2 is 5 queries and 2 keys"},
       2,
       kAny,
       documents,
       draws::documents,
       1},
      {{"rows", "rows_PERCENT_SEED", "rows_50_1", "every key or none, with that probability"},
       3,
       3,
       lines,
       draws::lines,
       1},
      {{"columns", "columns_PERCENT_SEED", "columns_50_1",
        "the same keys as all others, each drawn with that probability"},
       3,
       3,
       lines},
      {{"dilated", "dilated_L_R_STEP", "dilated_3_0_2",
        "every STEP-th key, L to the left of the aligned one and R to the right"},
       4,
       4,
       dilated,
       draws::dilated,
       1},
      {{"global", "global_G_L_R", "global_1_2_0",
        "a window, and the first G keys; the first G queries see all"},
       4,
       4,
       global_window,
       draws::global,
       1},
      {{"nm", "nm_N_M_SEED", "nm_2_4_1", "N of every M consecutive keys"},
       4,
       4,
       n_of_m,
       draws::nm,
       2},
      {{"pairs", "pairs_PERCENT_SEED", "pairs_50_1",
        "each key with that probability, in memory of the visible pairs only"},
       3,
       3,
       random_pairs,
       draws::pairs,
       1},
      {{"pattern", "pattern_PATH", "pattern_mine.json",
        "a .json or .safetensors file, as attest pattern --out writes"},
       2,
       kAny,
       from_file}};
  return all;
}

}  // namespace

const std::vector<SparsityPattern::Family>& SparsityPattern::families() {
  static const std::vector<Family> all = [] {
    std::vector<Family> families;
    for (const Spelling& spelling : spellings()) families.push_back(spelling.family);
    return families;
  }();
  return all;
}

std::string SparsityPattern::draw(Rng& rng, std::int64_t rows, std::int64_t columns) {
  std::int64_t turns = 0;
  for (const Spelling& one : spellings()) turns += one.turns;
  std::int64_t turn = rng.between(0, turns - 1);
  for (const Spelling& one : spellings()) {
    if (turn < one.turns) return one.draw(rng, rows, columns);
    turn -= one.turns;
  }
  throw InternalError("no family of patterns has this turn");
}

SparsityPattern SparsityPattern::parse(std::string_view text, std::int64_t rows,
                                       std::int64_t columns) {
  const Request request{std::string(text), split(text, '_'), rows, columns};
  const auto of = std::find_if(spellings().begin(), spellings().end(), [&](const Spelling& one) {
    return one.family.name == request.words[0];
  });
  if (of == spellings().end()) {
    std::vector<std::string> names;
    std::string list;
    for (const Family& family : families()) {
      names.push_back(family.name);
      list += " " + family.form;
    }
    request.refuse("is unknown" + did_you_mean(request.words[0], names) + " (patterns:" + list +
                   ")");
  }
  if (request.words.size() < of->least_words || request.words.size() > of->most_words) {
    request.refuse("is not " + of->family.form);
  }
  if (rows < 0 || columns < 0 || rows > kLargest32 || columns > kLargest32) {
    request.refuse("cannot be " + spell({rows, columns}) + "; extents go from 0 to 2^31 - 1");
  }
  return of->build(request);
}

}  // namespace attest
