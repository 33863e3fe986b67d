#include "certify/pattern/summary.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/mask/sparsity/blocks_of.hpp"
#include "core/mask/sparsity/pattern_file.hpp"
#include "core/mask/sparsity/visible_pairs.hpp"

namespace attest::certify {
namespace {

constexpr std::int64_t kMapRows = 32, kMapColumns = 64;

std::size_t at(std::int64_t value) { return static_cast<std::size_t>(value); }

Degrees degrees_of(std::vector<std::int64_t> degrees) {
  Degrees result;
  if (degrees.empty()) return result;
  std::sort(degrees.begin(), degrees.end());
  result.least = degrees.front();
  result.median = degrees[(degrees.size() - 1) / 2];
  result.most = degrees.back();
  result.none = std::count(degrees.begin(), degrees.end(), std::int64_t{0});
  result.one = std::count(degrees.begin(), degrees.end(), std::int64_t{1});
  return result;
}

// Keys joined by the queries that see them.
class JoinedKeys {
 public:
  explicit JoinedKeys(std::int64_t keys)
      : parent_(at(keys)), seen_(at(keys) + 1), linked_(at(keys) + 1) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }

  void add(const std::vector<KeyRange>& ranges) {
    for (const KeyRange& range : ranges) {
      ++seen_[at(range.begin)];
      --seen_[at(range.end)];
      ++linked_[at(range.begin)];
      --linked_[at(range.end - 1)];
      join(at(ranges.front().begin), at(range.begin));
    }
  }

  // How many sets the keys that a query sees form.
  std::int64_t count() {
    std::int64_t seen = 0, linked = 0, sets = 0;
    for (std::size_t key = 0; key + 1 < parent_.size(); ++key) {
      linked += linked_[key];
      if (linked > 0) join(key, key + 1);
    }
    for (std::size_t key = 0; key < parent_.size(); ++key) {
      seen += seen_[key];
      if (seen > 0 && find(key) == key) ++sets;
    }
    return sets;
  }

 private:
  std::size_t find(std::size_t key) {
    while (parent_[key] != key) key = parent_[key] = parent_[parent_[key]];
    return key;
  }
  void join(std::size_t a, std::size_t b) { parent_[find(b)] = find(a); }

  std::vector<std::size_t> parent_;
  std::vector<std::int64_t> seen_, linked_;  // changes from one key to the next
};

// Pairs of the cells of one row of a grid: key ranges are added, cells taken. A range costs the
// same however many cells it crosses.
class CellRow {
 public:
  CellRow(std::int64_t keys, std::int64_t cell_k)
      : keys_(keys),
        cell_k_(cell_k),
        parts_(at(blocks_of(keys, cell_k))),
        whole_changes_(parts_.size() + 1) {}

  void add(KeyRange range) {
    const std::int64_t first = range.begin / cell_k_, last = (range.end - 1) / cell_k_;
    if (first == last) {
      parts_[at(first)] += range.end - range.begin;
      return;
    }
    parts_[at(first)] += (first + 1) * cell_k_ - range.begin;
    parts_[at(last)] += range.end - last * cell_k_;
    ++whole_changes_[at(first) + 1];
    --whole_changes_[at(last)];
  }

  // take(pairs, keys of the cell) for each cell, which then begins anew.
  template <class Take>
  void take(const Take& take_cell) {
    std::int64_t whole = 0;
    for (std::size_t cell = 0; cell < parts_.size(); ++cell) {
      whole += std::exchange(whole_changes_[cell], 0);
      const std::int64_t first = static_cast<std::int64_t>(cell) * cell_k_;
      const std::int64_t keys = std::min(cell_k_, keys_ - first);
      take_cell(std::exchange(parts_[cell], 0) + whole * keys, keys);
    }
  }

 private:
  std::int64_t keys_, cell_k_;
  std::vector<std::int64_t> parts_;          // pairs of ranges that begin or end in the cell
  std::vector<std::int64_t> whole_changes_;  // ranges across the cell, from one cell to the next
};

// Where a query is the last one of its row of cells.
bool ends_row(std::int64_t query, std::int64_t cell_q, std::int64_t queries) {
  return query + 1 == queries || (query + 1) % cell_q == 0;
}

std::int64_t listed(const SparsityPattern& pattern) {
  if (const auto* blocks = std::get_if<BlockForm>(&pattern.form())) {
    return static_cast<std::int64_t>(blocks->occupied.columns.size());
  }
  if (const auto* nm = std::get_if<NmForm>(&pattern.form())) {
    return static_cast<std::int64_t>(nm->offsets.size());
  }
  return pattern.nnz();
}

nlohmann::json degrees_json(const Degrees& degrees) {
  return {{"least", degrees.least},
          {"median", degrees.median},
          {"most", degrees.most},
          {"none", degrees.none},
          {"one", degrees.one}};
}

bool ends_in(std::string_view path, std::string_view end) {
  return path.size() >= end.size() && path.substr(path.size() - end.size()) == end;
}

}  // namespace

SparsityPattern pattern_of(const Problem& problem) {
  const std::vector<Sequence> sequences = problem.sequences();
  const Sequence& first = sequences.front();
  for (std::size_t entry = 1; entry < sequences.size(); ++entry) {
    const Sequence& other = sequences[entry];
    if (other.q_length == first.q_length && other.k_length == first.k_length &&
        other.visible_keys == first.visible_keys) {
      continue;
    }
    throw InvalidProblem("mask '" + problem.mask.to_string() + "': batch entries 0 and " +
                         std::to_string(entry) +
                         " see different pairs; give the mask of one of them, or sequences in "
                         "one as documents_5_7_3");
  }
  return visible_pairs(problem.mask, first);
}

PatternSummary summarize(const SparsityPattern& pattern) {
  const std::int64_t rows = pattern.rows(), columns = pattern.columns();
  PatternSummary summary;
  DensityMap& map = summary.map;
  map.cell_q = std::max<std::int64_t>(blocks_of(rows, kMapRows), 1);
  map.cell_k = std::max<std::int64_t>(blocks_of(columns, kMapColumns), 1);
  map.rows = blocks_of(rows, map.cell_q);
  map.columns = blocks_of(columns, map.cell_k);
  summary.all_tiles = blocks_of(rows, kCountedTile) * blocks_of(columns, kCountedTile);

  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = std::numeric_limits<std::int64_t>::min();
  JoinedKeys joined(columns);
  CellRow cells(columns, map.cell_k), tiles(columns, kCountedTile);
  std::vector<KeyRange> ranges;
  for (std::int64_t i = 0; i < rows; ++i) {
    pattern.row(i, ranges);
    for (const KeyRange& range : ranges) {
      cells.add(range);
      tiles.add(range);
    }
    if (!ranges.empty()) {
      joined.add(ranges);
      least = std::min(least, ranges.front().begin - i);
      most = std::max(most, ranges.back().end - 1 - i);
    }
    if (ends_row(i, map.cell_q, rows)) {
      const std::int64_t queries = i % map.cell_q + 1;
      cells.take([&](std::int64_t pairs, std::int64_t keys) {
        map.density.push_back(static_cast<double>(pairs) / static_cast<double>(queries * keys));
      });
    }
    if (ends_row(i, kCountedTile, rows)) {
      const std::int64_t queries = i % kCountedTile + 1;
      tiles.take([&](std::int64_t pairs, std::int64_t keys) {
        summary.tiles += pairs > 0 ? 1 : 0;
        summary.whole_tiles += pairs == queries * keys ? 1 : 0;
      });
    }
  }
  summary.queries = degrees_of(pattern.row_degrees());
  summary.keys = degrees_of(pattern.column_degrees());
  summary.components = joined.count();
  if (least <= most) {
    summary.diagonals = most - least + 1;
    summary.first_diagonal = least;
  }
  return summary;
}

std::string form_text(const SparsityPattern& pattern) {
  struct Text {
    std::string operator()(const CsrForm&) const { return "single pairs"; }
    std::string operator()(const BlockForm& form) const {
      return "blocks of " + std::to_string(form.block_q) + " x " + std::to_string(form.block_k);
    }
    std::string operator()(const NmForm& form) const {
      return std::to_string(form.kept) + " of every " + std::to_string(form.group) + " keys";
    }
    std::string operator()(const RangeForm&) const { return "ranges of keys"; }
  };
  return std::visit(Text{}, pattern.form());
}

std::string map_text(const DensityMap& map) {
  constexpr std::string_view kShades = ".:-=+*#%";
  std::string text;
  for (std::int64_t row = 0; row < map.rows; ++row) {
    text += '|';
    for (std::int64_t column = 0; column < map.columns; ++column) {
      const double share = map.density[at(row * map.columns + column)];
      const auto shade =
          std::min(static_cast<std::size_t>(share * kShades.size()), kShades.size() - 1);
      text += share == 0 ? ' ' : share == 1 ? '@' : kShades[shade];
    }
    text += "|\n";
  }
  return text;
}

nlohmann::json pattern_summary_json(const SparsityPattern& pattern, const PatternSummary& summary) {
  nlohmann::json object{{"schema", "attest-pattern-1"},
                        {"mask", pattern.spelling()},
                        {"seqlen_q", pattern.rows()},
                        {"seqlen_k", pattern.columns()},
                        {"form", form_text(pattern)},
                        {"listed", listed(pattern)},
                        {"pairs", pattern.nnz()},
                        {"density", pattern.density()},
                        {"queries", degrees_json(summary.queries)},
                        {"keys", degrees_json(summary.keys)},
                        {"components", summary.components},
                        {"diagonals", summary.diagonals},
                        {"first_diagonal", summary.first_diagonal},
                        {"tiles",
                         {{"size", kCountedTile},
                          {"all", summary.all_tiles},
                          {"with_pairs", summary.tiles},
                          {"whole", summary.whole_tiles}}}};
  const DensityMap& map = summary.map;
  nlohmann::json rows = nlohmann::json::array();
  for (std::int64_t row = 0; row < map.rows; ++row) {
    const auto begin = map.density.begin() + row * map.columns;
    rows.push_back(std::vector<double>(begin, begin + map.columns));
  }
  object["map"] = {{"cell_q", map.cell_q}, {"cell_k", map.cell_k}, {"density", std::move(rows)}};
  return object;
}

void require_pattern_file(const SparsityPattern& pattern, const std::string& path) {
  const bool is_json = ends_in(path, ".json");
  if (!is_json && !ends_in(path, ".safetensors")) {
    throw InvalidProblem("pattern file '" + path + "': its name must end in .json or .safetensors");
  }
  require_mask_size(pattern.spelling(), pattern.rows(), pattern.columns());
  const int power = is_json ? 27 : 29;
  if (listed(pattern) > std::int64_t{1} << power) {
    throw InvalidProblem("mask '" + pattern.spelling() + "': the file would list " +
                         std::to_string(listed(pattern)) + " indices; at most 2^" +
                         std::to_string(power) + (is_json ? ", in .safetensors 2^29" : ""));
  }
}

std::string pattern_file_bytes(const SparsityPattern& pattern, const std::string& path) {
  require_pattern_file(pattern, path);
  return ends_in(path, ".json") ? pattern_json(pattern) : pattern_safetensors(pattern);
}

}  // namespace attest::certify
