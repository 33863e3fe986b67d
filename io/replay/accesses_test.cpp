#include "io/replay/accesses.hpp"

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "io/recording/trace_text.hpp"

namespace attest::io {
namespace {

// "read A[0,0] write y[0,0] …", addresses as names again; scratch is place numbers.
std::string spelled(const AccessTrace& trace) {
  std::string text;
  for (const Access& access : trace.accesses) {
    text += access.use == Use::read ? "read " : access.use == Use::write ? "write " : "update ";
    if (access.word >= trace.scratch) {
      text += "scratch[" + std::to_string(access.word - trace.scratch) + "] ";
      continue;
    }
    for (const AccessTrace::Region& region : trace.regions) {
      const std::int64_t offset = access.word - region.first;
      if (offset < 0 || offset >= region.rows * region.columns) continue;
      text += region.matrix + "[" + std::to_string(offset / region.columns) + "," +
              std::to_string(offset % region.columns) + "] ";
    }
  }
  return text;
}

AccessTrace accesses(const std::vector<std::string>& lines, std::size_t most = 1000) {
  AccessBuilder builder(most);
  for (const std::string& line : lines) builder.take(parse_word_move(line));
  return std::move(builder).finish();
}

TEST_CASE("a sum lies where it is stored", "[io][replay]") {
  CHECK(spelled(accesses({"load 0 A 0 0", "load 1 x 0 0", "clear 2", "accumulate 2 0 1",
                          "store 2 y 0 0", "free 2", "free 1", "free 0"})) ==
        "write y[0,0] read A[0,0] read x[0,0] update y[0,0] ");
}

TEST_CASE("what is never stored lies in scratch", "[io][replay]") {
  CHECK(spelled(accesses({"load 0 q 0 0", "load 1 k 0 0", "clear 2", "accumulate 2 0 1", "form 2 2",
                          "clear 3", "accumulate 3 2 1", "store 3 o 0 0",
                          // The same place of scratch again.
                          "clear 2", "rescale 2 0"})) ==
        "write scratch[2] read q[0,0] read k[0,0] update scratch[2] update scratch[2] "
        "write o[0,0] read scratch[2] read k[0,0] update o[0,0] write scratch[2] read q[0,0] "
        "update scratch[2] ");
}

TEST_CASE("a changed copy of a loaded word is another word", "[io][replay]") {
  // Not stored: slow memory keeps what it holds.
  CHECK(spelled(accesses({"load 0 S 0 0", "form 0 0", "rescale 0 0"})) ==
        "read S[0,0] write scratch[0] update scratch[0] ");
  // Stored back: the word itself.
  CHECK(spelled(accesses({"load 0 dQ 0 0", "load 1 k 0 0", "accumulate 0 1", "accumulate 0 1",
                          "store 0 dQ 0 0"})) ==
        "read k[0,0] read dQ[0,0] write dQ[0,0] read k[0,0] update dQ[0,0] ");
  // Stored and changed again.
  CHECK(spelled(accesses({"clear 0", "store 0 S 0 0", "rescale 0 0"})) ==
        "write S[0,0] read S[0,0] write scratch[0] ");
}

TEST_CASE("a second place in slow memory, or one still needed, is a copy", "[io][replay]") {
  CHECK(spelled(accesses({"clear 0", "store 0 y 0 0", "store 0 y 0 1"})) ==
        "write y[0,0] read y[0,0] write y[0,1] ");
  CHECK(spelled(accesses({"load 1 y 0 0", "clear 0", "accumulate 0 1", "store 0 y 0 0"})) ==
        "write scratch[0] read y[0,0] update scratch[0] read scratch[0] write y[0,0] ");
}

TEST_CASE("matrices lie row by row from multiples of the longest line", "[io][replay]") {
  const AccessTrace trace =
      accesses({"load 0 B 2 1", "load 1 B 0 2", "load 2 A 0 0", "clear 3", "accumulate 3 0 1 2"});
  REQUIRE(trace.regions.size() == 2);
  CHECK(trace.regions[1].matrix == "B");
  CHECK(trace.regions[1].first == kLongestLine);
  CHECK(trace.regions[1].rows == 3);
  CHECK(trace.regions[1].columns == 3);
  CHECK(trace.accesses[1].word == kLongestLine + 2 * 3 + 1);
  CHECK(trace.scratch == 2 * kLongestLine);
  CHECK(trace.words == trace.scratch + 4);
}

TEST_CASE("no trace of words that nobody wrote, and none too long", "[io][replay]") {
  CHECK_THROWS_AS(accesses({"accumulate 0 1"}), InternalError);
  CHECK_THROWS_AS(accesses({"store 0 y 0 0"}), InternalError);
  CHECK_THROWS_WITH(accesses({"clear 0", "clear 1", "clear 2"}, 2),
                    "trace: more than 2 accesses; make the problem smaller");
}

}  // namespace
}  // namespace attest::io
