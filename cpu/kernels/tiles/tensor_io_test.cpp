#include "cpu/kernels/tiles/tensor_io.hpp"

#include <vector>

#include "core/testing/catch.hpp"

namespace attest::cpu {
namespace {

// Sizes around those that are exchanged in registers; rows may lie apart.
TEST_CASE("every element of a tile is transposed, and nothing else written", "[cpu]") {
  for (std::int64_t rows = 0; rows <= 9; ++rows) {
    for (std::int64_t columns = 0; columns <= 9; ++columns) {
      for (const std::int64_t stride : {columns, columns + 3}) {
        INFO(rows << " x " << columns << ", " << stride << " apart");
        std::vector<float> in(static_cast<std::size_t>(rows * stride));
        for (std::size_t n = 0; n < in.size(); ++n) in[n] = static_cast<float>(n + 1);
        const std::int64_t apart = rows + stride - columns;  // in the result
        std::vector<float> expected(static_cast<std::size_t>(apart * columns) + 4, -1.0f);
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t c = 0; c < columns; ++c) {
            expected[static_cast<std::size_t>(c * apart + r)] =
                in[static_cast<std::size_t>(r * stride + c)];
          }
        }
        std::vector<float> out(expected.size(), -1.0f);
        transpose(in.data(), stride, rows, columns, out.data(), apart);
        CHECK(out == expected);
      }
    }
  }
}

}  // namespace
}  // namespace attest::cpu
