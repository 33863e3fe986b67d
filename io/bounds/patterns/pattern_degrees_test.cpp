#include "io/bounds/patterns/pattern_degrees.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::io {
namespace {

using Degrees = std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>;

// The components of one head, pair by pair, from one row to the rows that share a key with it.
void search(const Problem& problem, const Sequence& sequence,
            std::map<Degrees, std::int64_t>& out) {
  const std::int64_t rows = sequence.q_length * problem.group_size();
  const auto sees = [&](std::int64_t row, std::int64_t key) {
    return problem.mask.visible(sequence, row % sequence.q_length, key);
  };
  const auto degree = [&](std::int64_t row) {
    std::int64_t keys = 0;
    for (std::int64_t key = 0; key < sequence.k_length; ++key) keys += sees(row, key) ? 1 : 0;
    return keys;
  };
  std::vector<char> row_done(static_cast<std::size_t>(rows));
  std::vector<char> key_done(static_cast<std::size_t>(sequence.k_length));
  for (std::int64_t start = 0; start < rows; ++start) {
    if (row_done[static_cast<std::size_t>(start)] != 0 || degree(start) < 2) continue;
    Degrees found;
    std::vector<std::int64_t> open{start};
    row_done[static_cast<std::size_t>(start)] = 1;
    while (!open.empty()) {
      const std::int64_t row = open.back();
      open.pop_back();
      found.first.push_back(degree(row));
      for (std::int64_t key = 0; key < sequence.k_length; ++key) {
        if (!sees(row, key) || key_done[static_cast<std::size_t>(key)] != 0) continue;
        key_done[static_cast<std::size_t>(key)] = 1;
        std::int64_t seen_by = 0;
        for (std::int64_t other = 0; other < rows; ++other) {
          if (!sees(other, key) || degree(other) < 2) continue;
          ++seen_by;
          if (row_done[static_cast<std::size_t>(other)] != 0) continue;
          row_done[static_cast<std::size_t>(other)] = 1;
          open.push_back(other);
        }
        found.second.push_back(seen_by);
      }
    }
    std::sort(found.first.begin(), found.first.end(), std::greater<>());
    std::sort(found.second.begin(), found.second.end(), std::greater<>());
    out[found] += problem.num_heads_kv;
  }
}

TEST_CASE("components are those of a search through the graph", "[io][bounds]") {
  for (const char* text :
       {"sq=3,sk=5,d=2,dv=3", "b=2,hq=6,hkv=2,sq=4,sk=7,d=3,mask=causal_tl",
        "hq=2,sq=7,sk=4,d=3,mask=causal_br", "sq=9,sk=9,d=1,mask=window_0_0",
        "sq=9,sk=5,d=1,mask=window_tl_1_0", "sq=9,sk=12,d=1,mask=window_1_0",
        "b=3,sq=2,sk=6,d=2,mask=lengths_1_0_6", "b=3,sq=2,sk=6,d=2,mask=lengths_3_3_6",
        "b=2,hq=2,sq=5,sk=6,d=2,mask=lengths_1_4+causal_br", "hq=4,d=2,mask=cu_3x5_0x7_4x1_3x5",
        "hq=2,d=2,mask=cu_3x5_4x2+causal_tl", "sq=8,sk=9,d=2,mask=random_20_3",
        "sq=20,sk=20,d=2,mask=random_9_4", "sq=20,sk=20,d=2,mask=random_12_5",
        "hq=4,hkv=2,sq=8,sk=9,d=2,mask=random_30_5+causal_tl", "sq=4,sk=1,d=3,dv=2",
        "sq=5,sk=5,d=1,mask=random_0_1"}) {
    INFO(text);
    const Problem problem = Problem::parse(text);
    std::map<Degrees, std::int64_t> expected;
    for (const Sequence& sequence : problem.sequences()) search(problem, sequence, expected);
    const PatternDegrees degrees = pattern_degrees(problem);
    CHECK(degrees.extent == extent_of(problem));
    std::map<Degrees, std::int64_t> got;
    std::int64_t pairs = 0, rows = 0, keys = 0;
    for (const PatternComponent& component : degrees.components) {
      got[{component.row_degrees, component.key_degrees}] += component.copies;
      pairs += component.pairs() * component.copies;
      rows += static_cast<std::int64_t>(component.row_degrees.size()) * component.copies;
      keys += static_cast<std::int64_t>(component.key_degrees.size()) * component.copies;
    }
    CHECK(got == expected);
    CHECK(got.size() == degrees.components.size());
    CHECK(pairs == degrees.extent.pairs);
    CHECK(rows == degrees.extent.rows_many);
    CHECK(keys == degrees.extent.columns_many);
  }
}

TEST_CASE("heads and batch entries are copies", "[io][bounds]") {
  const auto components = [](const char* text) {
    return pattern_degrees(Problem::parse(text)).components;
  };
  REQUIRE(components("b=3,hq=4,sq=5,sk=6,d=2").size() == 1);
  CHECK(components("b=3,hq=4,sq=5,sk=6,d=2").front().copies == 12);
  // Query heads of a group are rows of one pattern.
  const auto group = components("b=3,hq=4,hkv=2,sq=5,sk=6,d=2").front();
  CHECK(group.copies == 6);
  CHECK(group.row_degrees == std::vector<std::int64_t>(10, 6));
  CHECK(group.key_degrees == std::vector<std::int64_t>(6, 10));
  // Two windows that do not touch.
  CHECK(components("d=2,mask=cu_4x4_4x4").front().copies == 2);
}

TEST_CASE("long sequences without a boolean mask are looked at row by row", "[io][bounds]") {
  const PatternDegrees degrees =
      pattern_degrees(Problem::parse("sq=1000000,d=64,mask=window_100_0"));
  REQUIRE(degrees.components.size() == 1);
  CHECK(degrees.components.front().key_degrees.size() == 1000000);
  CHECK(degrees.extent.pairs == degrees.components.front().pairs());
}

TEST_CASE("degrees of an impossible problem are refused", "[io][bounds]") {
  Problem problem;
  problem.seqlen_q = -1;
  CHECK_THROWS_AS(pattern_degrees(problem), InvalidProblem);
}

}  // namespace
}  // namespace attest::io
