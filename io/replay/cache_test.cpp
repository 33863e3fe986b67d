// Caches against sequences worked out by hand.
#include "io/replay/cache.hpp"

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "io/replay/testing/traces.hpp"

namespace attest::io {
namespace {

using testing::reads;
using testing::trace_of;

CacheTraffic run(const AccessTrace& trace, const std::string& cache) {
  return replay(trace, CacheSpec::parse(cache));
}

TEST_CASE("least recently used, by hand", "[io][replay]") {
  // 0 1 2 come, 0 is used, 3 takes the place of 1, 1 that of 2, 2 that of 0.
  const AccessTrace trace = reads({0, 1, 2, 0, 3, 1, 2});
  CHECK(run(trace, "lru:3").read_words() == 6);
  CHECK(run(trace, "lru:4").read_words() == 4);
  CHECK(run(trace, "lru:1").read_words() == 7);
  CHECK(run(trace, "lru:3").written_words() == 0);
}

TEST_CASE("Belady's, by hand", "[io][replay]") {
  // 3 takes the place of 0, which is not needed again.
  CHECK(run(reads({0, 1, 2, 0, 3, 1, 2}), "belady:3").read_words() == 4);
  // Cyclic: least recently used keeps nothing, Belady's one word of two in turn.
  const AccessTrace cycle = reads({0, 1, 2, 0, 1, 2, 0, 1, 2});
  CHECK(run(cycle, "lru:2").read_words() == 9);
  CHECK(run(cycle, "belady:2").read_words() == 6);
  // The example of Belady's paper on anomalies: 12 references, 3 and 4 frames.
  const AccessTrace anomaly = reads({1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5});
  CHECK(run(anomaly, "lru:3").read_words() == 10);
  CHECK(run(anomaly, "lru:4").read_words() == 8);
  CHECK(run(anomaly, "belady:3").read_words() == 7);
  CHECK(run(anomaly, "belady:4").read_words() == 6);
}

TEST_CASE("words written come back when they are needed", "[io][replay]") {
  // 0 is made, goes for 1 (written), comes back for its update (read), and is written at the end.
  const AccessTrace trace =
      trace_of({{0, Use::write}, {1, Use::read}, {0, Use::update}, {1, Use::read}});
  CHECK(run(trace, "lru:1").read_words() == 3);
  CHECK(run(trace, "lru:1").written_words() == 2);
  CHECK(run(trace, "lru:2").read_words() == 1);
  CHECK(run(trace, "lru:2").written_words() == 1);
  // Written anew: what was there is not fetched, and Belady's does not keep it.
  const AccessTrace anew =
      trace_of({{0, Use::read}, {1, Use::read}, {2, Use::read}, {0, Use::write}, {1, Use::read}});
  CHECK(run(anew, "lru:2").read_words() == 4);
  CHECK(run(anew, "belady:2").read_words() == 3);
}

TEST_CASE("scratch is written back like anything else", "[io][replay]") {
  AccessTrace trace = trace_of({{0, Use::write}, {kLongestLine, Use::write}});
  trace.words = kLongestLine + 1;
  CHECK(run(trace, "lru:2").written_lines == 2);
  CHECK(run(trace, "lru:2").scratch_written_lines == 1);
}

TEST_CASE("lines, by hand", "[io][replay]") {
  // Words 0 to 3 are one line, 4 to 7 the next.
  const AccessTrace rows = reads({0, 1, 2, 3, 4, 5, 6, 7, 0, 7});
  CHECK(run(rows, "lru:8,line=4").read_lines == 2);
  CHECK(run(rows, "lru:8,line=4").read_words() == 8);
  CHECK(run(rows, "lru:4,line=4").read_lines == 4);
  // Down a column of 4: a line for each word.
  CHECK(run(reads({0, 4, 8, 12}), "lru:8,line=4").read_words() == 16);
  // The whole line is made: nothing is fetched. Only a part of it: the rest is, once.
  const AccessTrace made = trace_of({{0, Use::write}, {1, Use::write}, {0, Use::read}});
  CHECK(run(made, "lru:2,line=2").read_lines == 0);
  CHECK(run(made, "lru:2,line=2").written_words() == 2);
  const AccessTrace part = trace_of({{0, Use::write}, {1, Use::read}, {1, Use::read}});
  CHECK(run(part, "lru:2,line=2").read_lines == 1);
  // Belady's keeps the line whose other word is needed.
  const AccessTrace beside = trace_of({{0, Use::read},
                                       {2, Use::read},
                                       {4, Use::read},
                                       {0, Use::write},
                                       {1, Use::read},
                                       {2, Use::read}});
  CHECK(run(beside, "belady:4,line=2").read_lines == 4);
}

TEST_CASE("sets, by hand", "[io][replay]") {
  // Four sets of one word: 0 and 4 drive each other out, 1 stays.
  const AccessTrace trace = reads({0, 4, 0, 4, 1, 0, 1});
  CHECK(run(trace, "set:4,ways=1").read_words() == 6);
  CHECK(run(trace, "set:4,ways=2").read_words() == 3);
  CHECK(run(trace, "set:4,ways=4").read_words() == 3);
  // Lines of two: 0 1 | 2 3 | 4 5 in two sets, the first and the third in the same.
  CHECK(run(reads({0, 2, 4, 1, 3, 5}), "set:4,ways=1,line=2").read_lines == 5);
}

TEST_CASE("spelling of caches", "[io][replay]") {
  for (const std::string text :
       {"lru:312", "belady:312", "lru:312,line=8", "set:512,ways=8", "set:512,ways=8,line=16"}) {
    CHECK(CacheSpec::parse(text).to_string() == text);
  }
  CHECK(CacheSpec::parse("lru:8,line=1").to_string() == "lru:8");
  const auto refusal = [](const std::string& text) {
    try {
      CacheSpec::parse(text);
    } catch (const InvalidProblem& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(refusal("beladi:8") ==
        "cache: 'beladi:8' is of no known kind; did you mean 'belady'? (lru:WORDS belady:WORDS "
        "set:WORDS,ways=W, each with ,line=L)");
  CHECK(refusal("lru") == "cache: 'lru' has no size; write lru:WORDS");
  CHECK(refusal("lru:0") == "cache: 'lru:0': size '0' is not a whole number from 1 on");
  CHECK(refusal("lru:8,ways=2") == "cache: 'lru:8,ways=2': 'ways=2' is unknown (line=L)");
  CHECK(refusal("set:8") == "cache: 'set:8' has no ways; write set:WORDS,ways=W");
  CHECK(refusal("set:8,ways=3") ==
        "cache: 'set:8,ways=3': 8 words are no whole number of sets of 3; give a multiple");
  CHECK(refusal("lru:12,line=8") ==
        "cache: 'lru:12,line=8': 12 words are no whole number of lines of 8; give a multiple");
  CHECK(refusal("lru:128,line=128") == "cache: 'lru:128,line=128': line=128 exceeds 64 words");
  CHECK(refusal("set:8,ways=99999999999999999999").find("is not a whole number") !=
        std::string::npos);
  CHECK(refusal("set:8,ways=4611686018427387904,line=4").find("exceeds 2^63") != std::string::npos);
}

}  // namespace
}  // namespace attest::io
