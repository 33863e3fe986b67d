#include "core/features/query_lengths.hpp"

#include <set>
#include <string>

#include "core/error.hpp"
#include "core/problem.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

TEST_CASE("query lengths are spelled", "[query_lengths]") {
  for (const char* text : {"drawn_7", "drawn_0", "drawn_18446744073709551615", "5_0_9", "0"}) {
    CHECK(QueryLengths::parse(text).to_string() == text);
  }
  CHECK(QueryLengths::parse("none") == QueryLengths{});
  for (const char* text : {"", "7_", "_7", "-1", "3_2147483648", "3__4", "drawn_", "drawn_x",
                           "drawn_18446744073709551616", "given"}) {
    INFO(text);
    CHECK_THROWS_WITH(QueryLengths::parse(text), Catch::Contains("query_lengths=drawn_7"));
  }
}

TEST_CASE("query lengths lie between none and all rows, and differ", "[query_lengths]") {
  std::set<std::int64_t> met;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const QueryLengths lengths = QueryLengths::parse("drawn_" + std::to_string(seed));
    for (std::int64_t b = 0; b < 3; ++b) met.insert(lengths(b, 5));
  }
  CHECK(met == std::set<std::int64_t>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("given query lengths are checked against the rows", "[query_lengths]") {
  const auto parsed = [](const char* lengths) {
    return Problem::parse(std::string("b=2,sq=3,d=4,query_lengths=") + lengths);
  };
  CHECK(parsed("3_0").to_string().ends_with(",query_lengths=3_0"));
  CHECK_THROWS_WITH(parsed("3"), Catch::Contains("one for each of 2 batch entries"));
  CHECK_THROWS_WITH(parsed("3_4"), Catch::Contains("batch entry 1 is 4; it must be from 0 to 3"));
}

// Rows past the length see nothing, and the last query that exists is aligned with the last key.
TEST_CASE("a query length ends the rows and moves the alignment", "[query_lengths]") {
  const Problem p = Problem::parse("sq=4,sk=3,d=4,mask=causal_br,query_lengths=2");
  const Sequence sequence = p.sequences().front();
  CHECK(p.mask.band(sequence, 0) == KeyRange{0, 2});
  CHECK(p.mask.band(sequence, 1) == KeyRange{0, 3});
  CHECK(p.mask.band(sequence, 2) == KeyRange{0, 0});
  CHECK(p.visible_pairs() == 5);
}

}  // namespace
}  // namespace attest
