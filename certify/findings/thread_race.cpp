#include "certify/findings/thread_race.hpp"

#include <fmt/format.h>

#include "certify/worker/process/isolated_kernel.hpp"

namespace attest::certify {

std::string race_words(const proptest::Law& law, const attest_kernel& kernel,
                       const proptest::Case& c, const Alike& alike) {
  constexpr int kRepetitions = 32;
  if (c.threads < 2) return "";
  proptest::Case alone = c;
  alone.threads = 1;
  // In turn, so that neither has the later calls of a process for itself.
  int failed = 0;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    failed += alike(worker::check(law, kernel, c)) ? 1 : 0;
    const Verdict verdict = worker::check(law, kernel, alone).verdict;
    if (verdict == Verdict::violated || verdict == Verdict::crashed) return "";
  }
  if (failed == 0) return "";
  if (failed == kRepetitions) {
    return fmt::format(
        "threads: fails in every one of {} repetitions with {} threads and in none with one: ",
        kRepetitions, c.threads);
  }
  return fmt::format("race: fails in {} of {} repetitions with {} threads and in none with one: ",
                     failed, kRepetitions, c.threads);
}

}  // namespace attest::certify
