#include "core/mask/sparsity/sparsity_pattern.hpp"

#include <algorithm>
#include <utility>

#include "core/mask/sparsity/blocks_of.hpp"
#include "core/mask/sparsity/check_form.hpp"

namespace attest {
namespace {

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

// Joins ranges that touch and cuts them at the pattern's edge.
class Row {
 public:
  Row(std::int64_t query, std::int64_t columns, std::vector<KeyRange>& ranges)
      : query_(query), columns_(columns), ranges_(ranges) {}

  void operator()(const CsrForm& csr) const { entries(csr, query_, 1); }

  void operator()(const BlockForm& form) const {
    entries(form.occupied, query_ / form.block_q, form.block_k);
  }

  void operator()(const NmForm& form) const {
    const std::int64_t groups = blocks_of(columns_, form.group);
    std::int64_t at = query_ * groups * form.kept;
    for (std::int64_t group = 0; group < groups; ++group) {
      for (std::int64_t k = 0; k < form.kept; ++k, ++at) {
        const std::int64_t key = group * form.group + form.offsets[index(at)];
        add(key, key + 1);
      }
    }
  }

  void operator()(const RangeForm& form) const {
    for (auto at = form.row_offsets[index(query_)]; at < form.row_offsets[index(query_ + 1)];
         ++at) {
      add(form.ranges[index(at)].begin, form.ranges[index(at)].end);
    }
  }

 private:
  void entries(const CsrForm& csr, std::int64_t row, std::int64_t width) const {
    for (auto at = csr.row_offsets[index(row)]; at < csr.row_offsets[index(row + 1)]; ++at) {
      const std::int64_t begin = csr.columns[index(at)] * width;
      add(begin, begin + width);
    }
  }

  void add(std::int64_t begin, std::int64_t end) const {
    end = std::min(end, columns_);
    if (begin >= end) return;
    if (!ranges_.empty() && ranges_.back().end == begin) {
      ranges_.back().end = end;
    } else {
      ranges_.push_back({begin, end});
    }
  }

  std::int64_t query_, columns_;
  std::vector<KeyRange>& ranges_;
};

// Counting sort by column keeps the rows ascending.
CsrForm transposed(const CsrForm& csr, std::int64_t columns) {
  CsrForm result;
  result.row_offsets.assign(index(columns + 1), 0);
  for (const std::int32_t column : csr.columns) ++result.row_offsets[index(column) + 1];
  for (std::size_t j = 1; j < result.row_offsets.size(); ++j) {
    result.row_offsets[j] += result.row_offsets[j - 1];
  }
  result.columns.resize(csr.columns.size());
  std::vector<std::int64_t> next(result.row_offsets.begin(), result.row_offsets.end() - 1);
  for (std::size_t i = 0; i + 1 < csr.row_offsets.size(); ++i) {
    for (auto at = csr.row_offsets[i]; at < csr.row_offsets[i + 1]; ++at) {
      result.columns[index(next[index(csr.columns[index(at)])]++)] = static_cast<std::int32_t>(i);
    }
  }
  return result;
}

// The queries of every key as ranges.
RangeForm vertical_ranges(const SparsityPattern& pattern) {
  std::vector<std::vector<KeyRange>> of_key(index(pattern.columns()));
  std::vector<KeyRange> ranges;
  for (std::int64_t i = 0; i < pattern.rows(); ++i) {
    pattern.row(i, ranges);
    for (const KeyRange& range : ranges) {
      for (std::int64_t j = range.begin; j < range.end; ++j) {
        auto& queries = of_key[index(j)];
        if (!queries.empty() && queries.back().end == i) {
          ++queries.back().end;
        } else {
          queries.push_back({i, i + 1});
        }
      }
    }
  }
  RangeForm form;
  for (const auto& queries : of_key) {
    form.ranges.insert(form.ranges.end(), queries.begin(), queries.end());
    form.row_offsets.push_back(static_cast<std::int64_t>(form.ranges.size()));
  }
  return form;
}

// How many pairs a form has; of blocks without a step for each query, of which one block may have
// any number.
struct Pairs {
  const SparsityPattern& pattern;

  std::int64_t operator()(const CsrForm& csr) const {
    return static_cast<std::int64_t>(csr.columns.size());
  }
  std::int64_t operator()(const BlockForm& form) const {
    std::int64_t pairs = 0;
    const auto extent = [](std::int64_t block, std::int64_t size, std::int64_t whole) {
      return std::min(size, whole - block * size);
    };
    const auto& [offsets, columns] = form.occupied;
    for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
      const std::int64_t queries =
          extent(static_cast<std::int64_t>(row), form.block_q, pattern.rows());
      for (std::int64_t e = offsets[row]; e < offsets[row + 1]; ++e) {
        pairs += queries * extent(columns[index(e)], form.block_k, pattern.columns());
      }
    }
    return pairs;
  }
  template <class Other>
  std::int64_t operator()(const Other&) const {
    std::int64_t pairs = 0;
    for (const std::int64_t degree : pattern.row_degrees()) pairs += degree;
    return pairs;
  }
};

std::string transposed_spelling(const std::string& spelling) {
  constexpr std::string_view kMark = "^T";
  const bool was = spelling.size() >= kMark.size() &&
                   spelling.compare(spelling.size() - kMark.size(), kMark.size(), kMark) == 0;
  return was ? spelling.substr(0, spelling.size() - kMark.size()) : spelling + std::string(kMark);
}

}  // namespace

SparsityPattern::SparsityPattern(std::int64_t rows, std::int64_t columns, Form form,
                                 std::string spelling)
    : rows_(rows), columns_(columns), form_(std::move(form)), spelling_(std::move(spelling)) {
  check_form(form_, rows_, columns_, spelling_);
  nnz_ = std::visit(Pairs{*this}, form_);
}

double SparsityPattern::density() const {
  const double pairs = static_cast<double>(rows_) * static_cast<double>(columns_);
  return pairs == 0 ? 0 : static_cast<double>(nnz_) / pairs;
}

void SparsityPattern::row(std::int64_t query, std::vector<KeyRange>& ranges) const {
  ranges.clear();
  std::visit(Row(query, columns_, ranges), form_);
}

bool SparsityPattern::contains(std::int64_t query, std::int64_t key) const {
  std::vector<KeyRange> ranges;
  row(query, ranges);
  return std::any_of(ranges.begin(), ranges.end(), [key](const KeyRange& range) {
    return range.begin <= key && key < range.end;
  });
}

std::vector<std::int64_t> SparsityPattern::row_degrees() const {
  std::vector<std::int64_t> degrees(index(rows_));
  std::vector<KeyRange> ranges;
  for (std::int64_t i = 0; i < rows_; ++i) {
    row(i, ranges);
    for (const KeyRange& range : ranges) degrees[index(i)] += range.end - range.begin;
  }
  return degrees;
}

std::vector<std::int64_t> SparsityPattern::column_degrees() const {
  std::vector<std::int64_t> degrees(index(columns_ + 1));  // differences, then sums
  std::vector<KeyRange> ranges;
  for (std::int64_t i = 0; i < rows_; ++i) {
    row(i, ranges);
    for (const KeyRange& range : ranges) {
      ++degrees[index(range.begin)];
      --degrees[index(range.end)];
    }
  }
  for (std::size_t j = 1; j < degrees.size(); ++j) degrees[j] += degrees[j - 1];
  degrees.pop_back();
  return degrees;
}

std::vector<std::int32_t> SparsityPattern::occupied_tiles(KeyRange queries,
                                                          std::int64_t tile_k) const {
  std::vector<std::uint8_t> occupied(index(blocks_of(columns_, tile_k)));
  std::vector<KeyRange> ranges;
  for (std::int64_t i = queries.begin; i < queries.end; ++i) {
    row(i, ranges);
    for (const KeyRange& range : ranges) {
      const auto first = occupied.begin() + range.begin / tile_k;
      std::fill(first, occupied.begin() + (range.end - 1) / tile_k + 1, std::uint8_t{1});
    }
  }
  std::vector<std::int32_t> tiles;
  for (std::size_t tile = 0; tile < occupied.size(); ++tile) {
    if (occupied[tile] != 0) tiles.push_back(static_cast<std::int32_t>(tile));
  }
  return tiles;
}

BlockForm SparsityPattern::tiles(std::int64_t tile_q, std::int64_t tile_k) const {
  BlockForm form{tile_q, tile_k, {}};
  for (std::int64_t begin = 0; begin < rows_; begin += tile_q) {
    const auto occupied = occupied_tiles({begin, std::min(begin + tile_q, rows_)}, tile_k);
    auto& columns = form.occupied.columns;
    columns.insert(columns.end(), occupied.begin(), occupied.end());
    form.occupied.row_offsets.push_back(static_cast<std::int64_t>(columns.size()));
  }
  return form;
}

SparsityPattern SparsityPattern::transpose() const {
  Form form;
  if (const auto* blocks = std::get_if<BlockForm>(&form_)) {
    form = BlockForm{blocks->block_k, blocks->block_q,
                     transposed(blocks->occupied, blocks_of(columns_, blocks->block_k))};
  } else if (std::holds_alternative<RangeForm>(form_)) {
    form = vertical_ranges(*this);
  } else {
    form = transposed(to_csr(), columns_);
  }
  return {columns_, rows_, std::move(form), transposed_spelling(spelling_)};
}

CsrForm SparsityPattern::to_csr() const {
  if (const auto* csr = std::get_if<CsrForm>(&form_)) return *csr;
  CsrForm csr;
  csr.row_offsets.reserve(index(rows_ + 1));
  csr.columns.reserve(index(nnz_));
  std::vector<KeyRange> ranges;
  for (std::int64_t i = 0; i < rows_; ++i) {
    row(i, ranges);
    for (const KeyRange& range : ranges) {
      for (std::int64_t j = range.begin; j < range.end; ++j) {
        csr.columns.push_back(static_cast<std::int32_t>(j));
      }
    }
    csr.row_offsets.push_back(static_cast<std::int64_t>(csr.columns.size()));
  }
  return csr;
}

std::vector<std::uint8_t> SparsityPattern::to_boolean() const {
  std::vector<std::uint8_t> visible(index(rows_ * columns_));
  std::vector<KeyRange> ranges;
  for (std::int64_t i = 0; i < rows_; ++i) {
    row(i, ranges);
    for (const KeyRange& range : ranges) {
      std::fill_n(visible.begin() + i * columns_ + range.begin, range.end - range.begin,
                  std::uint8_t{1});
    }
  }
  return visible;
}

bool operator==(const SparsityPattern& a, const SparsityPattern& b) {
  if (a.rows_ != b.rows_ || a.columns_ != b.columns_ || a.nnz_ != b.nnz_) return false;
  std::vector<KeyRange> of_a, of_b;
  for (std::int64_t i = 0; i < a.rows_; ++i) {
    a.row(i, of_a);
    b.row(i, of_b);
    if (of_a != of_b) return false;
  }
  return true;
}

}  // namespace attest
