#include "io/machine/words.hpp"

#include <limits>

#include "core/testing/catch.hpp"
#include "io/machine/slow_memory.hpp"

namespace attest::io {
namespace {

TEST_CASE("counts that leave 64 bits are refused", "[io]") {
  const Words large = std::numeric_limits<std::int64_t>::max();
  CHECK((large - 1) + 1 == large);
  CHECK_THROWS_AS(large + 1, InvalidProblem);
  CHECK_THROWS_AS(Words(-2) - large, InvalidProblem);
  CHECK_THROWS_WITH(Words(std::int64_t{1} << 32) * (std::int64_t{1} << 31),
                    "words: 4294967296 * 2147483648 exceeds 2^63 - 1; give a smaller problem or "
                    "larger tiles");
  CHECK(Words(std::int64_t{1} << 31) * (std::int64_t{1} << 31) == std::int64_t{1} << 62);
}

TEST_CASE("tiles cover an extent", "[io]") {
  CHECK(tiles(0, 3) == 0);
  CHECK(tiles(6, 3) == 2);
  CHECK(tiles(7, 3) == 3);
  CHECK(tiles(std::numeric_limits<std::int64_t>::max(), 2) == std::int64_t{1} << 62);
}

TEST_CASE("single blocks cover an extent", "[io]") {
  CHECK(single_blocks(0, 3).empty());
  CHECK(single_blocks(6, 3) == std::vector<Range>{{0, 3}, {3, 6}});
  CHECK(single_blocks(7, 3) == std::vector<Range>{{0, 3}, {3, 6}, {6, 7}});
  CHECK(single_blocks(7, std::numeric_limits<std::int64_t>::max()) == std::vector<Range>{{0, 7}});
}

TEST_CASE("runs one after the other add traffic and keep the larger peak", "[io]") {
  const Traffic a{{1, 2}, {3, 6}, {10, 40}}, b{{5, 20}, {7, 28}, {11, 22}};
  const Traffic both = then(a, b);
  CHECK(both.reads == Amount{6, 22});
  CHECK(both.writes == Amount{10, 34});
  CHECK(both.peak == Amount{11, 40});
  CHECK(both.total_words() == 16);
  CHECK(both.total_bytes() == 56);
}

}  // namespace
}  // namespace attest::io
