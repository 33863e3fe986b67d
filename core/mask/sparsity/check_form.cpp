#include "core/mask/sparsity/check_form.hpp"

#include <string_view>

#include "core/error.hpp"
#include "core/mask/mask_part.hpp"
#include "core/mask/sparsity/blocks_of.hpp"

namespace attest {
namespace {

class Check {
 public:
  Check(std::int64_t rows, std::int64_t columns, const std::string& spelling)
      : rows_(rows), columns_(columns), spelling_(spelling) {}

  void operator()(const CsrForm& csr) const { grid(csr, rows_, columns_, "key"); }

  void operator()(const BlockForm& form) const {
    for (const std::int64_t extent : {form.block_q, form.block_k}) {
      if (extent >= 1 && extent <= kLargest32) continue;
      refuse("blocks of " + size(form.block_q, form.block_k) +
             "; both sizes must be from 1 to 2^31 - 1");
    }
    grid(form.occupied, blocks_of(rows_, form.block_q), blocks_of(columns_, form.block_k),
         "block column");
  }

  void operator()(const NmForm& form) const {
    if (form.kept < 1 || form.kept > form.group || form.group > 256) {
      refuse(std::to_string(form.kept) + " of every " + std::to_string(form.group) +
             " keys; it must be N of M with 1 <= N <= M <= 256");
    }
    const std::int64_t groups = blocks_of(columns_, form.group);
    const auto got = static_cast<std::int64_t>(form.offsets.size());
    if (got != rows_ * groups * form.kept) {
      refuse("has " + std::to_string(got) + " offsets; it needs " + std::to_string(rows_) +
             " rows x " + std::to_string(groups) + " groups x " + std::to_string(form.kept));
    }
    for (std::int64_t at = 0; at < got; ++at) {
      const int offset = form.offsets[static_cast<std::size_t>(at)];
      const bool first = at % form.kept == 0;
      const int before = first ? -1 : form.offsets[static_cast<std::size_t>(at - 1)];
      if (offset <= before || offset >= form.group) {
        refuse("offsets[" + std::to_string(at) + "] is " + std::to_string(offset) +
               (offset >= form.group
                    ? "; offsets must be below " + std::to_string(form.group)
                    : " after " + std::to_string(before) + "; offsets of a group must ascend"));
      }
    }
  }

  void operator()(const RangeForm& form) const {
    offsets(form.row_offsets, rows_, form.ranges.size(), "ranges");
    for (std::int64_t i = 0; i < rows_; ++i) {
      std::int64_t least = 0;
      for (auto at = form.row_offsets[static_cast<std::size_t>(i)];
           at < form.row_offsets[static_cast<std::size_t>(i + 1)]; ++at) {
        const KeyRange range = form.ranges[static_cast<std::size_t>(at)];
        if (range.begin < least || range.end <= range.begin || range.end > columns_) {
          refuse("ranges[" + std::to_string(at) + "] of row " + std::to_string(i) + " is " +
                 std::to_string(range.begin) + " .. " + std::to_string(range.end) +
                 "; ranges must ascend, hold a key and end by " + std::to_string(columns_));
        }
        least = range.end;
      }
    }
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw InvalidProblem("pattern '" + spelling_ + "': " + why);
  }

  static std::string size(std::int64_t a, std::int64_t b) {
    return std::to_string(a) + " x " + std::to_string(b);
  }

 private:
  void offsets(const std::vector<std::int64_t>& list, std::int64_t rows, std::size_t entries,
               std::string_view of) const {
    if (static_cast<std::int64_t>(list.size()) != rows + 1) {
      refuse("row_offsets has " + std::to_string(list.size()) + " entries; " +
             std::to_string(rows) + " rows need " + std::to_string(rows + 1));
    }
    if (list.front() != 0) {
      refuse("row_offsets[0] is " + std::to_string(list.front()) + "; it must be 0");
    }
    for (std::size_t i = 1; i < list.size(); ++i) {
      if (list[i] < list[i - 1]) {
        refuse("row_offsets[" + std::to_string(i) + "] is " + std::to_string(list[i]) + " after " +
               std::to_string(list[i - 1]) + "; offsets must not decrease");
      }
    }
    if (list.back() != static_cast<std::int64_t>(entries)) {
      refuse("row_offsets ends at " + std::to_string(list.back()) + ", but there are " +
             std::to_string(entries) + " " + std::string(of));
    }
  }

  void grid(const CsrForm& csr, std::int64_t rows, std::int64_t columns,
            std::string_view what) const {
    offsets(csr.row_offsets, rows, csr.columns.size(), "columns");
    for (std::int64_t i = 0; i < rows; ++i) {
      std::int64_t before = -1;
      for (auto at = csr.row_offsets[static_cast<std::size_t>(i)];
           at < csr.row_offsets[static_cast<std::size_t>(i + 1)]; ++at) {
        const std::int64_t column = csr.columns[static_cast<std::size_t>(at)];
        if (column < 0 || column >= columns) {
          place(at, i, column, std::string(what) + "s go from 0 to " + std::to_string(columns - 1));
        }
        if (column <= before) {
          place(at, i, column,
                column == before ? std::string(what) + " " + std::to_string(column) +
                                       " is there twice; leave one out"
                                 : "it comes after " + std::to_string(before) +
                                       "; sort the columns of every row");
        }
        before = column;
      }
    }
  }

  [[noreturn]] void place(std::int64_t at, std::int64_t row, std::int64_t column,
                          const std::string& why) const {
    refuse("columns[" + std::to_string(at) + "] of row " + std::to_string(row) + " is " +
           std::to_string(column) + "; " + why);
  }

  std::int64_t rows_, columns_;
  const std::string& spelling_;
};

}  // namespace

void check_form(const SparsityPattern::Form& form, std::int64_t rows, std::int64_t columns,
                const std::string& spelling) {
  const Check check(rows, columns, spelling);
  if (rows < 0 || columns < 0 || rows > kLargest32 || columns > kLargest32) {
    check.refuse("is " + Check::size(rows, columns) + "; extents go from 0 to 2^31 - 1");
  }
  std::visit(check, form);
}

}  // namespace attest
