#include "io/bounds/patterns/components.hpp"

#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "io/bounds/compulsory.hpp"
#include "io/bounds/dense/backward.hpp"
#include "io/bounds/dense/forward.hpp"
#include "io/bounds/patterns/pattern.hpp"

namespace attest::io {
namespace {

using Bounds = std::vector<Bound> (*)(const Extent&, const KernelClass&, std::int64_t);

std::int64_t by_size(Bounds bounds, const Extent& extent, std::int64_t fast_words) {
  return greatest_of_many_keys(bounds(extent, {}, fast_words)).value();
}

// Ten documents of 2 x 3, which have few pairs to a word, and one of 64 x 48.
constexpr const char* kDocuments = "d=8,dv=6,mask=cu_2x3_2x3_2x3_2x3_2x3_2x3_2x3_2x3_2x3_2x3_64x48";

TEST_CASE("small components count their compulsory words, large ones their pairs", "[io][bounds]") {
  const PatternDegrees degrees = pattern_degrees(Problem::parse(kDocuments));
  const std::int64_t fast_words = 40;
  Extent large = degrees.extent;
  large.pairs = 64 * 48;

  const std::int64_t forward = forward_components(degrees, {}, fast_words).words;
  CHECK(forward == 10 * (2 + 3) * (8 + 6) + by_size(forward_bounds, large, fast_words));
  CHECK(forward > by_size(forward_bounds, degrees.extent, fast_words));
  CHECK(forward > compulsory_forward(degrees.extent, {}).words);

  const std::int64_t backward = backward_components(degrees, {}, fast_words).words;
  CHECK(backward ==
        10 * (2 * (2 * 8 + 6) + 3 * 2 * (8 + 6)) + by_size(backward_bounds, large, fast_words));
  CHECK(backward > by_size(backward_bounds, degrees.extent, fast_words));
  CHECK(backward > compulsory_backward(degrees.extent, {}).words);
}

TEST_CASE("with fast memory for all of them components are compulsory words", "[io][bounds]") {
  for (const char* text : {kDocuments, "b=3,hq=4,hkv=2,sq=9,sk=7,d=5,dv=3,mask=causal_br"}) {
    const PatternDegrees degrees = pattern_degrees(Problem::parse(text));
    const Extent& extent = degrees.extent;
    const std::int64_t fast_words = 1 << 20;
    const std::vector<Bound> forward{forward_components(degrees, {}, fast_words)};
    CHECK(forward_other_rows(extent, {}, fast_words, forward).words ==
          compulsory_forward(extent, {}).words);
    const std::vector<Bound> backward{backward_components(degrees, {}, fast_words)};
    CHECK(backward_other_rows(extent, {}, fast_words, backward).words ==
          compulsory_backward(extent, {}).words);
  }
}

TEST_CASE("more components than choices", "[io][bounds]") {
  std::string text = "d=4,mask=cu";
  for (int length = 2; length < 100; ++length) {
    text += "_" + std::to_string(length) + "x" + std::to_string(102 - length);
  }
  const PatternDegrees degrees = pattern_degrees(Problem::parse(text));
  CHECK(degrees.components.size() > 64);
  for (const std::int64_t fast_words : {8, 60, 300, 100000}) {
    const std::int64_t words = forward_components(degrees, {}, fast_words).words;
    CHECK(words >= by_size(forward_bounds, degrees.extent, fast_words));
    CHECK(words >= (degrees.extent.rows_many + degrees.extent.columns_many) * 8);
  }
}

TEST_CASE("components outside the class", "[io][bounds]") {
  const PatternDegrees degrees = pattern_degrees(Problem::parse(kDocuments));
  KernelClass shared;
  shared.storage = Storage::key_is_value;
  CHECK_FALSE(forward_components(degrees, shared, 64).applies());
  CHECK_FALSE(backward_components(degrees, shared, 64).applies());
  const PatternDegrees none = pattern_degrees(Problem::parse("sq=9,sk=9,d=1,mask=window_0_0"));
  CHECK(forward_components(none, {}, 4).words == 0);
  CHECK(backward_components(none, {}, 4).words == 0);
}

}  // namespace
}  // namespace attest::io
