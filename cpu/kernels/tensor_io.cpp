#include "cpu/kernels/tensor_io.hpp"

#include "core/dtype.hpp"

namespace attest::cpu {
namespace {

constexpr std::uint8_t kBfloatCode = 4;

char* base(const attest_tensor& tensor) {
  return static_cast<char*>(tensor.data) + tensor.byte_offset;
}

std::int64_t row_offset(const attest_tensor& tensor, const RowBlock& rows, std::int64_t r) {
  return rows.batch * tensor.strides[0] + (rows.first + r) * tensor.strides[1] +
         rows.head * tensor.strides[2];
}

// Calls visit(pointer to the first element of row r, r) with the element type of the tensor.
template <typename Element, typename Visit>
void for_rows(const attest_tensor& tensor, const RowBlock& rows, const Visit& visit) {
  auto* data = reinterpret_cast<Element*>(base(tensor));
  for (std::int64_t r = 0; r < rows.count; ++r) visit(data + row_offset(tensor, rows, r), r);
}

template <typename Element, typename Convert>
void load(const attest_tensor& tensor, const RowBlock& rows, float* tile, std::int64_t row_stride,
          std::int64_t column_stride, const Convert& convert) {
  const std::int64_t columns = tensor.shape[3], stride = tensor.strides[3];
  for_rows<Element>(tensor, rows, [&](const Element* row, std::int64_t r) {
    float* out = tile + r * row_stride;
    if (stride == 1 && column_stride == 1) {  // the case compilers vectorise
      for (std::int64_t c = 0; c < columns; ++c) out[c] = convert(row[c]);
      return;
    }
    for (std::int64_t c = 0; c < columns; ++c) out[c * column_stride] = convert(row[c * stride]);
  });
}

void load_strided(const attest_tensor& tensor, const RowBlock& rows, float* tile,
                  std::int64_t row_stride, std::int64_t column_stride) {
  if (tensor.dtype.bits == 32) {
    load<float>(tensor, rows, tile, row_stride, column_stride, [](float x) { return x; });
  } else if (tensor.dtype.code == kBfloatCode) {
    load<std::uint16_t>(tensor, rows, tile, row_stride, column_stride, float_from_bf16);
  } else {
    load<std::uint16_t>(tensor, rows, tile, row_stride, column_stride, float_from_f16);
  }
}

template <typename Element, typename Convert>
void store(const attest_tensor& tensor, const RowBlock& rows, const float* tile,
           const Convert& convert) {
  const std::int64_t columns = tensor.shape[3], stride = tensor.strides[3];
  for_rows<Element>(tensor, rows, [&](Element* row, std::int64_t r) {
    for (std::int64_t c = 0; c < columns; ++c) row[c * stride] = convert(tile[r * columns + c]);
  });
}

float* scalar_row(const attest_tensor& tensor, const RowBlock& rows) {
  return reinterpret_cast<float*>(base(tensor)) + rows.batch * tensor.strides[0] +
         rows.head * tensor.strides[1] + rows.first * tensor.strides[2];
}

}  // namespace

void load_rows(const attest_tensor& tensor, const RowBlock& rows, float* tile) {
  load_strided(tensor, rows, tile, tensor.shape[3], 1);
}

void load_transposed(const attest_tensor& tensor, const RowBlock& rows, float* tile) {
  load_strided(tensor, rows, tile, 1, rows.count);
}

void store_rows(const attest_tensor& tensor, const RowBlock& rows, const float* tile) {
  if (tensor.dtype.bits == 32) {
    store<float>(tensor, rows, tile, [](float x) { return x; });
  } else if (tensor.dtype.code == kBfloatCode) {
    store<std::uint16_t>(tensor, rows, tile, bf16_from_float);
  } else {
    store<std::uint16_t>(tensor, rows, tile, f16_from_float);
  }
}

void load_scalars(const attest_tensor& tensor, const RowBlock& rows, float* values) {
  const float* row = scalar_row(tensor, rows);
  for (std::int64_t r = 0; r < rows.count; ++r) values[r] = row[r * tensor.strides[2]];
}

void store_scalars(const attest_tensor& tensor, const RowBlock& rows, const float* values) {
  float* row = scalar_row(tensor, rows);
  for (std::int64_t r = 0; r < rows.count; ++r) row[r * tensor.strides[2]] = values[r];
}

}  // namespace attest::cpu
