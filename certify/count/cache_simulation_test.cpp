// Needs valgrind and its headers; sanitizers and valgrind do not go together, so their builds are
// without it.
#include "certify/count/cache_count.hpp"
#include "certify/count/instrumentation.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

CacheLines simulated(const std::string& kernel) {
  return simulate_call({std::string(ATTEST_PLUGINS) + "/libtraffic.so:" + kernel, "sq=1024,d=64",
                        Direction::forward},
                       CacheGeometry::parse("32768,8,64"), ATTEST_PROGRAM);
}

TEST_CASE("a simulated cache counts every line that moves", "[cache]") {
  REQUIRE(can_instrument());
  const CacheLines unread = simulated("passes0"), once = simulated("passes1"),
                   twice = simulated("passes2");
  CHECK(unread.read < 4096);
  // A pass over K, whose 4096 lines are eight times the cache, drives out what the call touches
  // besides, and that may come back once.
  for (const std::int64_t pass : {once.read - unread.read, twice.read - once.read}) {
    CHECK(pass >= 4096);
    CHECK(pass <= 4096 + unread.read);
  }
  // O is fetched to be written, and what was written leaves, up to the last line. An access that
  // straddles two lines counts one miss in callgrind, though both may drive out a changed line:
  // instructions and stack that come in the meantime hide no more of those than there are.
  for (const CacheLines& lines : {unread, once, twice}) {
    CHECK(lines.allocated >= 4096);
    CHECK(lines.allocated <= 4096 + unread.read);
    CHECK(lines.written_back >= 4096 - unread.read);
    CHECK(lines.written_back <= 4096 + unread.read);
  }
}

TEST_CASE("what the call says is passed on", "[cache]") {
  const CacheGeometry cache = CacheGeometry::parse("32768,8,64");
  const auto refusal = [&](const CallToSimulate& call) {
    try {
      simulate_call(call, cache, ATTEST_PROGRAM);
    } catch (const InvalidProblem& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(refusal({"cpu/flash2", "sq=2,d=4", Direction::loss_gradient}),
             Contains("cpu/flash2") && Contains("loss"));
  CHECK_THAT(refusal({std::string(ATTEST_PLUGINS) + "/libmisbehaving.so:crash", "sq=2,d=4",
                      Direction::forward}),
             Contains("died under valgrind of signal"));
}

}  // namespace
}  // namespace attest::certify
