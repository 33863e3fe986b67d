#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"

/// Tiles of strided tensors as float32 and back; 16-bit types are converted exactly on the way in
/// and rounded to nearest even on the way out.
namespace attest::cpu {

/// Rows of a batch entry's K or V in pages: row r lies in slot r % page_size of page
/// table[r / page_size].
struct PageRow {
  const std::int32_t* table;
  std::int64_t page_size;
};

/// The row of the block table of batch entry b; without a table where K and V are not paged.
PageRow pages_of(const attest_problem& problem, std::int64_t b);

/// Rows first .. first+count-1 on axis 1 of a (batch, seqlen, heads, dim) tensor.
struct RowBlock {
  std::int64_t batch, first, count, head;
};

/// The first row of a tensor whose rows are float32, element after element; null for any other.
const float* float_rows(const attest_tensor& tensor);

/// Rows of floats, `stride` apart; or, in pairs, of two numbers in bf16 in the bits of each float.
struct RowsView {
  const float* data;
  std::int64_t stride;
  bool in_pairs = false;
};

/// tile(row, column), row-major, `count` x dim.
void load_rows(const attest_tensor& tensor, const RowBlock& rows, float* tile);

/// The same with rows `stride` apart.
void load_rows_apart(const attest_tensor& tensor, const RowBlock& rows, std::int64_t stride,
                     float* tile);

/// tile(column, row): dim x `count`.
void load_transposed(const attest_tensor& tensor, const RowBlock& rows, float* tile);

/// The same of K or V that may lie in pages: rows first .. are then keys of the batch entry, from
/// its first on.
void load_rows(const attest_tensor& tensor, const PageRow& pages, const RowBlock& rows,
               float* tile);

/// Returns the rows where they lie, or those that load_rows puts into `tile` where they are no rows
/// of float32 or lie in pages.
RowsView view_rows(const attest_tensor& tensor, const PageRow& pages, const RowBlock& rows,
                   float* tile);

/// Returns the rows of a tensor of bf16 in pairs of neighbouring columns, in `tile`; the last
/// column of an odd number has 0 beside it. Where `numbers` is not null it gets them widened, as by
/// load_rows, from the same read.  [cpu/kernels/tiles/tensor_io_test]
RowsView load_column_pairs(const attest_tensor& tensor, const PageRow& pages, const RowBlock& rows,
                           float* tile, float* numbers = nullptr);

/// Rows of floats to write, `stride` apart.
struct OutputRows {
  float* data;
  std::int64_t stride;
};

/// Returns the rows where they are float32, element after element; null for any others.
OutputRows output_rows(const attest_tensor& tensor, const RowBlock& rows);

/// Brings the rows of `heads` heads nearer, row after row, where they lie side by side in memory
/// and not in pages. Changes nothing else.
void fetch_rows(const attest_tensor& tensor, const PageRow& pages, const RowBlock& rows,
                std::int64_t heads);

/// out[c * out_stride + r] = in[r * stride + c]: `rows` x `columns` floats as `columns` x `rows`.
/// [cpu/kernels/tiles/tensor_io_test]
void transpose(const float* in, std::int64_t stride, std::int64_t rows, std::int64_t columns,
               float* out, std::int64_t out_stride);

void store_rows(const attest_tensor& tensor, const RowBlock& rows, const float* tile);
void store_rows_apart(const attest_tensor& tensor, const RowBlock& rows, std::int64_t stride,
                      const float* tile);

/// Elements of a (batch, heads, seqlen) float32 tensor: rows first .. of one head.
void load_scalars(const attest_tensor& tensor, const RowBlock& rows, float* values);
void store_scalars(const attest_tensor& tensor, const RowBlock& rows, const float* values);

/// Element of a float32 tensor of one axis.
void store_element(const attest_tensor& tensor, std::int64_t place, float value);

}  // namespace attest::cpu
