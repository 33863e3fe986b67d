// The outer half of a simulated call: starts valgrind and reads its counts.
#include <sys/wait.h>

#include <charconv>
#include <cstring>
#include <map>
#include <sstream>

#include "certify/count/cache_count.hpp"
#include "certify/count/program.hpp"
#include "certify/files.hpp"
#include "certify/temporary_folder.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::int64_t whole(const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end ? value : -1;
}

bool power_of_two(std::int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

// Returns what the call said before the call ended: its own line, else valgrind's last.
std::string last_words(const std::string& text) {
  constexpr std::string_view kOwn = "attest: ";
  std::string last;
  for (const std::string& line : split(text, '\n')) {
    if (line.rfind(kOwn, 0) == 0) return line.substr(kOwn.size());
    if (line.rfind("==", 0) != 0 && line.rfind("--", 0) != 0 && !line.empty()) last = line;
  }
  return last;
}

}  // namespace

CacheGeometry CacheGeometry::parse(const std::string& text) {
  const auto refuse = [&](const std::string& why) -> InvalidProblem {
    return InvalidProblem("cache: '" + text + "' " + why +
                          "; give SIZE,ASSOC,LINE in bytes, ways, bytes, as in 32768,8,64");
  };
  const std::vector<std::string> parts = split(text, ',');
  if (parts.size() != 3) throw refuse("is not three numbers");
  const CacheGeometry cache{whole(parts[0]), whole(parts[1]), whole(parts[2])};
  if (cache.bytes <= 0 || cache.ways <= 0 || cache.line_bytes <= 0) {
    throw refuse("has a part that is no positive whole number");
  }
  constexpr std::int64_t kLeastLine = 32, kMostLine = 1024, kMostBytes = std::int64_t{1} << 30;
  if (!power_of_two(cache.line_bytes) || cache.line_bytes < kLeastLine ||
      cache.line_bytes > kMostLine) {
    throw refuse("has a line that is no power of two from 32 to 1024");
  }
  if (cache.bytes > kMostBytes) throw refuse("is larger than 1 GiB");
  const auto sets_are_a_power_of_two = [&] {
    if (cache.ways > cache.bytes / cache.line_bytes) return false;  // and their product overflows
    const std::int64_t set_bytes = cache.ways * cache.line_bytes;
    return cache.bytes % set_bytes == 0 && power_of_two(cache.bytes / set_bytes);
  };
  if (!sets_are_a_power_of_two()) {
    throw refuse("does not have a power of two of sets, SIZE / (ASSOC x LINE)");
  }
  return cache;
}

std::string CacheGeometry::to_string() const {
  return std::to_string(bytes) + "," + std::to_string(ways) + "," + std::to_string(line_bytes);
}

CacheLines parse_callgrind(const std::string& text) {
  std::vector<std::string> events, totals;
  for (const std::string& line : split(text, '\n')) {
    if (line.rfind("events: ", 0) == 0) events = split(line.substr(8), ' ');
    if (line.rfind("totals: ", 0) == 0) totals = split(line.substr(8), ' ');
  }
  if (totals.empty()) throw InvalidProblem("callgrind wrote no totals; valgrind 3.19 is known to");
  std::map<std::string, std::int64_t> counts;  // zeros at the end of the totals are left out
  for (std::size_t k = 0; k < events.size(); ++k) {
    counts[events[k]] = k < totals.size() ? whole(totals[k]) : 0;
  }
  const auto count = [&](const char* event) {
    const auto found = counts.find(event);
    if (found == counts.end() || found->second < 0) {
      throw InvalidProblem("callgrind counted no " + std::string(event) +
                           "; valgrind 3.19 is known to");
    }
    return found->second;
  };
  return {count("DLmr"), count("DLmw"), count("ILdmr") + count("DLdmr") + count("DLdmw")};
}

CacheLines simulate_call(const CallToSimulate& call, const CacheGeometry& cache,
                         const std::string& program) {
  const TemporaryFolder folder;
  const std::string counts = folder.file("callgrind.out"), output = folder.file("output");
  const std::string line = std::to_string(cache.line_bytes);
  // The last-level cache is the one that writes back, so it is the cache asked for; in front of it
  // stand the least that callgrind allows, two lines, and instructions that never miss twice.
  // Valgrind's own optimiser would drop loads whose value is overwritten unread.
  // OpenMP threads would add their own traffic, and spin.
  const Program valgrind{{"valgrind",
                          "--tool=callgrind",
                          "--vex-iropt-level=0",
                          "--instr-atstart=no",
                          "--cache-sim=yes",
                          "--simulate-wb=yes",
                          "--I1=1048576,8," + line,
                          "--D1=" + std::to_string(2 * cache.line_bytes) + ",2," + line,
                          "--LL=" + cache.to_string(),
                          "--callgrind-out-file=" + counts,
                          program,
                          "simulated-call",
                          "--kernel",
                          call.kernel,
                          "--problem",
                          call.problem,
                          "--direction",
                          std::string(name(call.direction)),
                          "--flush-bytes",
                          std::to_string(cache.bytes)},
                         "valgrind",
                         {"OMP_NUM_THREADS=1", "OMP_WAIT_POLICY=passive"}};
  const int status = run_program(valgrind, output);
  const std::string said = last_words(read_file(output));
  if (WIFSIGNALED(status)) {
    throw InvalidProblem(call.kernel + ": died under valgrind of signal " +
                         std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) +
                         "); its processor has AVX2 and no AVX-512");
  }
  if (WEXITSTATUS(status) != 0) {
    throw InvalidProblem(said.empty() ? call.kernel + ": valgrind ended with status " +
                                            std::to_string(WEXITSTATUS(status))
                                      : said);
  }
  CacheLines lines = parse_callgrind(read_file(counts));
  lines.read -= cache.bytes / cache.line_bytes;  // those that drove the others out
  return lines;
}

}  // namespace attest::certify
