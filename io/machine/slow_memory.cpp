#include "io/machine/slow_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include "core/dtype/element.hpp"
#include "core/error.hpp"
#include "io/machine/guarded_pages.hpp"

namespace attest::io {

std::vector<Range> single_blocks(std::int64_t extent, std::int64_t block) {
  std::vector<Range> blocks;
  for (std::int64_t begin = 0; begin < extent; begin = blocks.back().end) {
    blocks.push_back({begin, begin + std::min(block, extent - begin)});
  }
  return blocks;
}

template <class Element>
const Element* SlowAccess::first(const SlowMatrix& matrix) {
  return reinterpret_cast<const Element*>(matrix.data_) + matrix.rows_.begin * matrix.row_stride_ +
         matrix.columns_.begin * matrix.column_stride_;
}

template <class Element, class Convert>
void SlowAccess::copy_in_as(const SlowMatrix& from, float* to, Convert convert) {
  const Element* row = first<Element>(from);
  const OpenPages opened(row);
  for (std::int64_t i = 0; i < from.rows(); ++i, row += from.row_stride_) {
    for (std::int64_t j = 0; j < from.columns(); ++j) *to++ = convert(row[j * from.column_stride_]);
  }
}

template <class Element, class Convert>
void SlowAccess::copy_out_as(const float* from, std::int64_t stride, const MutableSlowMatrix& to,
                             Convert convert) {
  auto* row = const_cast<Element*>(first<Element>(to));  // a MutableSlowMatrix was given void*
  const OpenPages opened(row);
  for (std::int64_t i = 0; i < to.rows(); ++i, row += to.row_stride_, from += stride) {
    for (std::int64_t j = 0; j < to.columns(); ++j) row[j * to.column_stride_] = convert(from[j]);
  }
}

void SlowAccess::require_data(const SlowMatrix& matrix) {
  if (matrix.data_ != nullptr || matrix.rows() * matrix.columns() == 0) return;
  throw InternalError("matrix '" + std::string(matrix.name()) +
                      "' has no data; only a dry machine takes it");
}

const float* SlowAccess::packed_rows(const SlowMatrix& matrix) {
  const bool packed = matrix.dtype_ == DType::f32 && matrix.column_stride_ == 1;
  return packed ? first<float>(matrix) : nullptr;
}

void SlowAccess::copy_in(const SlowMatrix& from, float* to) {
  visit_element(from.dtype_, [&](auto element) {
    using Stored = typename decltype(element)::Stored;
    copy_in_as<Stored>(from, to, [element](Stored x) { return element.load(x); });
  });
}

void SlowAccess::copy_out(const float* from, std::int64_t stride, const MutableSlowMatrix& to) {
  visit_element(to.dtype(), [&](auto element) {
    copy_out_as<typename decltype(element)::Stored>(
        from, stride, to, [element](float x) { return element.store(x); });
  });
}

}  // namespace attest::io
