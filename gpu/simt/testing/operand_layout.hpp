#pragma once

#include <cstddef>

#include "gpu/simt/tensor_core/matrix_descriptor.hpp"

namespace attest::simt::testing {

/// An operand of a warpgroup's product as PTX's tables of canonical layouts have it: atoms of 8
/// lines, each of one swizzle's span of contiguous elements, one after the other; without swizzle
/// lines of 16 bytes.
struct OperandLayout {
  Swizzle swizzle;
  Major major;
  std::size_t rows;
  std::size_t element_bytes = 2;

  std::size_t depth() const { return 32 / element_bytes; }
  std::size_t span_bytes() const { return std::size_t{16} << static_cast<std::size_t>(swizzle); }
  std::size_t span() const { return span_bytes() / element_bytes; }
  std::size_t atom_bytes() const { return 8 * span_bytes(); }
  // Atoms along the contiguous dimension; of a span wider than k the other elements are unused.
  std::size_t spans() const { return ((major == Major::k ? depth() : rows) + span() - 1) / span(); }
  std::size_t lines() const { return major == Major::k ? rows : depth(); }
  std::size_t bytes() const { return spans() * lines() / 8 * atom_bytes(); }
  // Atoms lie along lines first.
  std::size_t along_lines() const { return atom_bytes(); }
  std::size_t along_spans() const { return lines() / 8 * atom_bytes(); }
  std::size_t place(std::size_t row, std::size_t k) const {
    const std::size_t line = major == Major::k ? row : k, column = major == Major::k ? k : row;
    const std::size_t piece = column % span() * element_bytes / 16;
    std::size_t key = 0;
    if (swizzle == Swizzle::bytes_32) key = line / 4 % 2;
    if (swizzle == Swizzle::bytes_64) key = line / 2 % 4;
    if (swizzle == Swizzle::bytes_128) key = line % 8;
    return line / 8 * along_lines() + column / span() * along_spans() + line % 8 * span_bytes() +
           (piece ^ key) * 16 + column * element_bytes % 16;
  }
  // Offsets by the table in matrix_descriptor.hpp.
  unsigned leading() const {
    const bool between_spans = swizzle != Swizzle::none || major == Major::k;
    return static_cast<unsigned>(between_spans ? along_spans() : along_lines());
  }
  unsigned stride() const {
    const bool between_spans = swizzle == Swizzle::none && major == Major::rows;
    return static_cast<unsigned>(between_spans ? along_spans() : along_lines());
  }
};

}  // namespace attest::simt::testing
