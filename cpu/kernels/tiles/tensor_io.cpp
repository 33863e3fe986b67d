#include "cpu/kernels/tiles/tensor_io.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "core/dtype/element.hpp"
#include "cpu/kernels/vectors/arithmetic.hpp"

namespace attest::cpu {
namespace {

DType dtype_of(const attest_tensor& tensor) {
  for (const DTypeFacts& row : kDTypes) {
    if (row.bits == tensor.dtype.bits && row.dlpack_code == tensor.dtype.code) return row.dtype;
  }
  return kDTypes.back().dtype;
}

char* base(const attest_tensor& tensor) {
  return static_cast<char*>(tensor.data) + tensor.byte_offset;
}

std::int64_t row_offset(const attest_tensor& tensor, const RowBlock& rows, std::int64_t r) {
  return rows.batch * tensor.strides[0] + (rows.first + r) * tensor.strides[1] +
         rows.head * tensor.strides[2];
}

// Calls visit(pointer to the first element of row r, r) with the element type of the tensor.
template <typename Stored, typename Visit>
void for_rows(const attest_tensor& tensor, const RowBlock& rows, const Visit& visit) {
  auto* data = reinterpret_cast<Stored*>(base(tensor));
  for (std::int64_t r = 0; r < rows.count; ++r) visit(data + row_offset(tensor, rows, r), r);
}

// Calls visit(rows of the tensor, the first of them) page by page; without pages, once.
template <typename Visit>
void for_pages(const PageRow& pages, const RowBlock& rows, const Visit& visit) {
  if (pages.table == nullptr) return visit(rows, 0);
  for (std::int64_t r = 0; r < rows.count;) {
    const std::int64_t row = rows.first + r, slot = row % pages.page_size;
    const std::int64_t count = std::min(pages.page_size - slot, rows.count - r);
    visit(RowBlock{pages.table[row / pages.page_size], slot, count, rows.head}, r);
    r += count;
  }
}

template <typename Stored, typename Convert>
void load(const attest_tensor& tensor, const RowBlock& rows, float* tile, std::int64_t row_stride,
          std::int64_t column_stride, const Convert& convert) {
  const std::int64_t columns = tensor.shape[3], stride = tensor.strides[3];
  for_rows<Stored>(tensor, rows, [&](const Stored* row, std::int64_t r) {
    float* out = tile + r * row_stride;
    if (stride == 1 && column_stride == 1) {  // the case compilers vectorise
      for (std::int64_t c = 0; c < columns; ++c) out[c] = convert(row[c]);
      return;
    }
    for (std::int64_t c = 0; c < columns; ++c) out[c * column_stride] = convert(row[c * stride]);
  });
}

// The conversion of rows that lie element after element, where there is one in vectors.
auto widening(DType dtype) -> void (*)(const std::uint16_t*, std::int64_t, float*) {
  if (dtype == DType::bf16) return widen_bf16;
  return dtype == DType::f16 ? widen_f16 : nullptr;
}

void load_strided(const attest_tensor& tensor, const RowBlock& rows, float* tile,
                  std::int64_t row_stride, std::int64_t column_stride) {
  const auto widen = widening(dtype_of(tensor));
  if (widen != nullptr && tensor.strides[3] == 1 && column_stride == 1) {
    return for_rows<std::uint16_t>(tensor, rows, [&](const std::uint16_t* row, std::int64_t r) {
      widen(row, tensor.shape[3], tile + r * row_stride);
    });
  }
  visit_element(dtype_of(tensor), [&](auto element) {
    using Stored = typename decltype(element)::Stored;
    load<Stored>(tensor, rows, tile, row_stride, column_stride,
                 [element](Stored x) { return element.load(x); });
  });
}

using Vector = float __attribute__((vector_size(16)));
constexpr std::int64_t kWidth = 4;

// out[c * out_stride + r] = in[r * in_stride + c], r and c < kWidth, by exchanges in registers:
// four times fewer stores than one by one.
inline void transpose_square(const float* in, std::int64_t in_stride, float* out,
                             std::int64_t out_stride) {
  const auto row = [&](std::int64_t r) {
    Vector x;
    std::memcpy(&x, in + r * in_stride, sizeof x);
    return x;
  };
  const auto put = [&](std::int64_t c, Vector x) {
    std::memcpy(out + c * out_stride, &x, sizeof x);
  };
  const Vector a = row(0), b = row(1), c = row(2), d = row(3);
  const Vector ac_low = __builtin_shufflevector(a, c, 0, 4, 1, 5);
  const Vector bd_low = __builtin_shufflevector(b, d, 0, 4, 1, 5);
  const Vector ac_high = __builtin_shufflevector(a, c, 2, 6, 3, 7);
  const Vector bd_high = __builtin_shufflevector(b, d, 2, 6, 3, 7);
  put(0, __builtin_shufflevector(ac_low, bd_low, 0, 4, 1, 5));
  put(1, __builtin_shufflevector(ac_low, bd_low, 2, 6, 3, 7));
  put(2, __builtin_shufflevector(ac_high, bd_high, 0, 4, 1, 5));
  put(3, __builtin_shufflevector(ac_high, bd_high, 2, 6, 3, 7));
}

template <typename Stored, typename Convert>
void store(const attest_tensor& tensor, const RowBlock& rows, const float* tile,
           std::int64_t tile_stride, const Convert& convert) {
  const std::int64_t columns = tensor.shape[3], stride = tensor.strides[3];
  for_rows<Stored>(tensor, rows, [&](Stored* row, std::int64_t r) {
    const float* in = tile + r * tile_stride;
    if (stride == 1) {  // the case compilers vectorise
      for (std::int64_t c = 0; c < columns; ++c) row[c] = convert(in[c]);
      return;
    }
    for (std::int64_t c = 0; c < columns; ++c) row[c * stride] = convert(in[c]);
  });
}

float* scalar_row(const attest_tensor& tensor, const RowBlock& rows) {
  return reinterpret_cast<float*>(base(tensor)) + rows.batch * tensor.strides[0] +
         rows.head * tensor.strides[1] + rows.first * tensor.strides[2];
}

}  // namespace

const float* float_rows(const attest_tensor& tensor) {
  const bool is_found = tensor.dtype.bits == 32 && tensor.strides[3] == 1;
  return is_found ? reinterpret_cast<const float*>(base(tensor)) : nullptr;
}

void load_rows(const attest_tensor& tensor, const RowBlock& rows, float* tile) {
  load_strided(tensor, rows, tile, tensor.shape[3], 1);
}

void load_rows_apart(const attest_tensor& tensor, const RowBlock& rows, std::int64_t stride,
                     float* tile) {
  load_strided(tensor, rows, tile, stride, 1);
}

void transpose(const float* in, std::int64_t stride, std::int64_t rows, std::int64_t columns,
               float* out, std::int64_t out_stride) {
  const std::int64_t whole_rows = rows / kWidth * kWidth, whole = columns / kWidth * kWidth;
  for (std::int64_t r = 0; r < whole_rows; r += kWidth) {
    for (std::int64_t c = 0; c < whole; c += kWidth) {
      transpose_square(in + r * stride + c, stride, out + c * out_stride + r, out_stride);
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = r < whole_rows ? whole : 0; c < columns; ++c) {
      out[c * out_stride + r] = in[r * stride + c];
    }
  }
}

void load_transposed(const attest_tensor& tensor, const RowBlock& rows, float* tile) {
  if (const float* const first = float_rows(tensor); first != nullptr) {
    return transpose(first + row_offset(tensor, rows, 0), tensor.strides[1], rows.count,
                     tensor.shape[3], tile, rows.count);
  }
  load_strided(tensor, rows, tile, 1, rows.count);
}

PageRow pages_of(const attest_problem& problem, std::int64_t b) {
  const attest_paged_kv* const paged = problem.paged_kv;
  if (paged == nullptr) return {nullptr, 0};
  return {paged->block_table + b * paged->max_pages, paged->page_size};
}

void load_rows(const attest_tensor& tensor, const PageRow& pages, const RowBlock& rows,
               float* tile) {
  for_pages(pages, rows, [&](const RowBlock& some, std::int64_t r) {
    load_rows(tensor, some, tile + r * tensor.shape[3]);
  });
}

RowsView load_column_pairs(const attest_tensor& tensor, const PageRow& pages, const RowBlock& rows,
                           float* tile, float* numbers) {
  const std::int64_t columns = tensor.shape[3], stride = tensor.strides[3],
                     pairs = (columns + 1) / 2;
  std::vector<std::uint16_t> apart(stride == 1 ? 0 : static_cast<std::size_t>(columns));
  const auto put = [&](const std::uint16_t* bits, std::int64_t row) {
    if (stride != 1) {
      for (std::int64_t c = 0; c < columns; ++c)
        apart[static_cast<std::size_t>(c)] = bits[c * stride];
      bits = apart.data();
    }
    float* const out = tile + row * pairs;
    if (columns % 2 != 0) out[pairs - 1] = 0;
    std::memcpy(out, bits, static_cast<std::size_t>(columns) * sizeof *bits);
    if (numbers != nullptr) widen_bf16(bits, columns, numbers + row * columns);
  };
  for_pages(pages, rows, [&](const RowBlock& some, std::int64_t first) {
    for_rows<std::uint16_t>(tensor, some,
                            [&](const std::uint16_t* row, std::int64_t r) { put(row, first + r); });
  });
  return {tile, pairs, true};
}

RowsView view_rows(const attest_tensor& tensor, const PageRow& pages, const RowBlock& rows,
                   float* tile) {
  const float* const first = pages.table == nullptr ? float_rows(tensor) : nullptr;
  if (first != nullptr) return {first + row_offset(tensor, rows, 0), tensor.strides[1]};
  load_rows(tensor, pages, rows, tile);
  return {tile, tensor.shape[3]};
}

OutputRows output_rows(const attest_tensor& tensor, const RowBlock& rows) {
  if (float_rows(tensor) == nullptr) return {nullptr, 0};
  return {reinterpret_cast<float*>(base(tensor)) + row_offset(tensor, rows, 0), tensor.strides[1]};
}

void fetch_rows(const attest_tensor& tensor, const PageRow& pages, const RowBlock& rows,
                std::int64_t heads) {
  constexpr std::int64_t kLine = 64;
  const std::int64_t columns = tensor.shape[3], apart = tensor.strides[2];
  const bool is_dense =
      tensor.strides[3] == 1 && (heads == 1 || (apart > 0 && apart <= 2 * columns));
  if (pages.table != nullptr || !is_dense) return;
  const std::int64_t size = tensor.dtype.bits / 8;
  const std::int64_t bytes = ((heads - 1) * apart + columns) * size;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const char* const row = base(tensor) + row_offset(tensor, rows, r) * size;
    for (std::int64_t byte = 0; byte < bytes; byte += kLine) __builtin_prefetch(row + byte, 0, 2);
  }
}

void store_rows(const attest_tensor& tensor, const RowBlock& rows, const float* tile) {
  store_rows_apart(tensor, rows, tensor.shape[3], tile);
}

void store_rows_apart(const attest_tensor& tensor, const RowBlock& rows, std::int64_t stride,
                      const float* tile) {
  visit_element(dtype_of(tensor), [&](auto element) {
    store<typename decltype(element)::Stored>(tensor, rows, tile, stride,
                                              [element](float x) { return element.store(x); });
  });
}

void load_scalars(const attest_tensor& tensor, const RowBlock& rows, float* values) {
  const float* row = scalar_row(tensor, rows);
  for (std::int64_t r = 0; r < rows.count; ++r) values[r] = row[r * tensor.strides[2]];
}

void store_scalars(const attest_tensor& tensor, const RowBlock& rows, const float* values) {
  float* row = scalar_row(tensor, rows);
  for (std::int64_t r = 0; r < rows.count; ++r) row[r * tensor.strides[2]] = values[r];
}

void store_element(const attest_tensor& tensor, std::int64_t place, float value) {
  auto* const first = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  reinterpret_cast<float*>(first)[place * tensor.strides[0]] = value;
}

}  // namespace attest::cpu
