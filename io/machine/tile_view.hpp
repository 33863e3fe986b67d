#pragma once

#include <cstdint>

/// Tiles as operations see them: row-major float32. Schedules never hold a view.
namespace attest::io {

struct TileView {
  float* data;
  std::int64_t rows, columns, stride;

  float* row(std::int64_t i) const { return data + i * stride; }
};

struct ConstTileView {
  const float* data;
  std::int64_t rows, columns, stride;

  ConstTileView(const float* first, std::int64_t row_count, std::int64_t column_count,
                std::int64_t row_stride)
      : data(first), rows(row_count), columns(column_count), stride(row_stride) {}
  ConstTileView(const TileView& view)  // NOLINT: what may be written may be read
      : ConstTileView(view.data, view.rows, view.columns, view.stride) {}

  const float* row(std::int64_t i) const { return data + i * stride; }
};

}  // namespace attest::io
