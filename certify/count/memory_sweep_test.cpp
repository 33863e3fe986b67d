#include "certify/count/memory_sweep.hpp"

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

using Sizes = std::vector<std::int64_t>;

TEST_CASE("sizes of fast memory", "[certify]") {
  CHECK(memory_sizes("16384") == Sizes{16384});
  CHECK(memory_sizes("4096,1024") == Sizes{4096, 1024});
  CHECK(memory_sizes("1024:5000:x2") == Sizes{1024, 2048, 4096});
  CHECK(memory_sizes("1024:4096:+1024") == Sizes{1024, 2048, 3072, 4096});
  CHECK(memory_sizes("7:7:x2") == Sizes{7});
  // Neither a factor nor a step passes the largest number.
  CHECK(memory_sizes("9223372036854775806:9223372036854775806:x9").size() == 1);
  CHECK(memory_sizes("9223372036854775800:9223372036854775806:+5").size() == 2);
}

TEST_CASE("sizes of fast memory that are refused", "[certify]") {
  for (const char* text :
       {"", "x", "-1", "1.5", "1,", ",1", "1:2", "1:2:", "1:2:3", "1:2:x", "1:2:x1", "0:2:x2",
        "1:2:+0", "2:1:x2", "1:2:x2:3", "1:300:+1", "9223372036854775807", "1 ", "1:2:y2"}) {
    INFO(text);
    CHECK_THROWS_AS(memory_sizes(text), InvalidProblem);
  }
  CHECK_THROWS_WITH(memory_sizes("8:4:x2"),
                    "'8:4:x2' begins above its end; give M, a list M,M,… or FROM:TO:xFACTOR or "
                    "FROM:TO:+STEP");
}

}  // namespace
}  // namespace attest::certify
