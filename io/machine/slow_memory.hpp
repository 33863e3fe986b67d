#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/dtype/dtype.hpp"

/// Slow memory: handles that say where words lie and how many there are, and nothing about what
/// they hold. Only a machine opens them, and a machine charges for it.
namespace attest::cpu {
class NativeMachine;
}

namespace attest::io {

class ArenaBackend;
class RecordingBackend;

/// Rows or columns begin .. end-1.
struct Range {
  std::int64_t begin = 0, end = 0;

  std::int64_t count() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

/// The blocks that cover an extent, each a range of its own: for loops whose blocks are not alike.
/// [io/machine/words_test "single blocks"]
std::vector<Range> single_blocks(std::int64_t extent, std::int64_t block);

/// A matrix in slow memory. It has no operator and no member that gives an element or an address.
/// [CTest slow_memory_element and its like: reading it does not compile]
class SlowMatrix {
 public:
  /// Where the elements lie: element (i, j) at data[i * row_stride + j * column_stride], counted in
  /// elements. Without data (nullptr) only a machine that moves none takes it.
  struct Place {
    const void* data = nullptr;
    std::int64_t row_stride = 0, column_stride = 1;
  };

  SlowMatrix() = default;
  SlowMatrix(const char* name, std::int64_t rows, std::int64_t columns, DType dtype, Place place)
      : name_(name),
        data_(static_cast<const std::byte*>(place.data)),
        row_stride_(place.row_stride),
        column_stride_(place.column_stride),
        rows_{0, rows},
        columns_{0, columns},
        dtype_(dtype) {}

  const char* name() const { return name_; }
  std::int64_t rows() const { return rows_.count(); }
  std::int64_t columns() const { return columns_.count(); }
  DType dtype() const { return dtype_; }

  /// The rows (and columns) of this block counted from its own first one. Requires: inside.
  SlowMatrix block(Range rows) const { return part<SlowMatrix>(*this, rows, {0, columns()}); }
  SlowMatrix block(Range rows, Range columns) const {
    return part<SlowMatrix>(*this, rows, columns);
  }

 protected:
  template <class Matrix>
  static Matrix part(const Matrix& whole, Range rows, Range columns) {
    Matrix inner = whole;
    inner.rows_ = {whole.rows_.begin + rows.begin, whole.rows_.begin + rows.end};
    inner.columns_ = {whole.columns_.begin + columns.begin, whole.columns_.begin + columns.end};
    return inner;
  }

 private:
  friend class SlowAccess;

  const char* name_ = "";
  const std::byte* data_ = nullptr;
  std::int64_t row_stride_ = 0, column_stride_ = 1;
  Range rows_, columns_;  // within the matrix that has this name
  DType dtype_ = DType::f32;
};

/// A matrix in slow memory that may be stored to.
class MutableSlowMatrix : public SlowMatrix {
 public:
  using Place = SlowMatrix::Place;

  MutableSlowMatrix() = default;
  MutableSlowMatrix(const char* name, std::int64_t rows, std::int64_t columns, DType dtype,
                    void* data, std::int64_t row_stride, std::int64_t column_stride = 1)
      : SlowMatrix(name, rows, columns, dtype, {data, row_stride, column_stride}) {}

  MutableSlowMatrix block(Range rows) const { return part(*this, rows, {0, columns()}); }
  MutableSlowMatrix block(Range rows, Range columns) const { return part(*this, rows, columns); }
};

/// Key that opens slow memory. Only the machines named here can use the key.
class SlowAccess {
  friend class ArenaBackend;
  friend class RecordingBackend;
  friend class cpu::NativeMachine;
  class RecordingBackend;

  /// Where in the matrix of that name a block lies.
  static Range rows_of(const SlowMatrix& matrix) { return matrix.rows_; }
  static Range columns_of(const SlowMatrix& matrix) { return matrix.columns_; }

  /// Throws InternalError when the matrix has no data (or no elements to have any).
  static void require_data(const SlowMatrix& matrix);

  /// Float32 rows without gaps between columns, or nullptr when the layout or dtype is another.
  static const float* packed_rows(const SlowMatrix& matrix);
  static std::int64_t row_stride(const SlowMatrix& matrix) { return matrix.row_stride_; }

  /// Copies a block to and from row-major float32; 16-bit types are exact on the way in and rounded
  /// to nearest even on the way out.
  static void copy_in(const SlowMatrix& from, float* to);
  static void copy_out(const float* from, std::int64_t stride, const MutableSlowMatrix& to);

  template <class Element>
  static const Element* first(const SlowMatrix& matrix);
  template <class Element, class Convert>
  static void copy_in_as(const SlowMatrix& from, float* to, Convert convert);
  template <class Element, class Convert>
  static void copy_out_as(const float* from, std::int64_t stride, const MutableSlowMatrix& to,
                          Convert convert);
};

}  // namespace attest::io
