#include "cpu/kernels/tiles/tensor_io.hpp"

#include <cstring>
#include <string>
#include <vector>

#include "core/dtype/dtype.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/kernel_call.hpp"

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

// Rows side by side and scattered; an even and an odd number of columns.
TEST_CASE("columns of bf16 are paired, an odd last one with zero", "[cpu]") {
  using attest::testing::Memory;
  for (const Memory memory : {Memory::spelled, Memory::scattered}) {
    for (const std::int64_t d : {1, 2, 7, 16, 33}) {
      INFO(d << " columns");
      const Problem problem =
          Problem::parse("b=2,hq=2,sq=9,d=" + std::to_string(d) + ",dtype=bf16");
      attest::testing::Call call(problem, 5, {memory, 1, 1, attest::testing::Dlse::absent});
      const std::int64_t pairs = (d + 1) / 2;
      std::vector<float> tile(static_cast<std::size_t>(4 * pairs) + 1, -1.0f),
          numbers(static_cast<std::size_t>(4 * d) + 1, -1.0f);
      const RowsView rows =
          load_column_pairs(*call.K.abi(), {nullptr, 0}, {1, 3, 4, 1}, tile.data(), numbers.data());
      CHECK(rows.in_pairs);
      CHECK(rows.stride == pairs);
      CHECK(tile.back() == -1);
      CHECK(numbers.back() == -1);
      for (std::int64_t r = 0; r < 4; ++r) {
        for (std::int64_t c = 0; c < 2 * pairs; ++c) {
          std::uint32_t pair = 0;
          std::memcpy(&pair, rows.data + r * rows.stride + c / 2, sizeof pair);
          const auto bits = static_cast<std::uint16_t>(c % 2 == 0 ? pair & 0xffff : pair >> 16);
          const double wanted = c < d ? call.K.view()(1, 3 + r, 1, c) : 0;
          CHECK(static_cast<double>(float_from_bf16(bits)) == wanted);
          if (c < d) {
            CHECK(static_cast<double>(numbers[static_cast<std::size_t>(r * d + c)]) == wanted);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace attest::cpu
