#include "core/features/drawn_row.hpp"

#include "core/rng.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

TEST_CASE("a row's number depends on everything it is of, in any order of calls", "[drawn_row]") {
  struct Row {
    std::uint64_t seed, stream;
    std::array<std::uint64_t, 3> at;
  };
  // Neighbours differ in one place; the first is asked for twice, and again at the end.
  for (const Row& row : {Row{7, 1, {2, 3, 4}}, Row{7, 1, {2, 3, 4}}, Row{8, 1, {2, 3, 4}},
                         Row{8, 2, {2, 3, 4}}, Row{8, 2, {5, 3, 4}}, Row{8, 2, {5, 6, 4}},
                         Row{8, 2, {5, 6, 9}}, Row{0, 0, {0, 0, 0}}, Row{7, 1, {2, 3, 4}}}) {
    std::uint64_t expected = mix(row.seed, row.stream);
    for (const std::uint64_t index : row.at) expected = mix(expected, index);
    CHECK(drawn_row(row.seed, row.stream, row.at) == expected);
  }
}

}  // namespace
}  // namespace attest
