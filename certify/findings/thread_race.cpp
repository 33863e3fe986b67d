#include "certify/findings/thread_race.hpp"

#include <fmt/format.h>

#include "certify/worker/process/isolated_kernel.hpp"

namespace attest::certify {

Race race_of(const proptest::Law& law, const attest_kernel& kernel, const proptest::Case& c,
             const Alike& alike) {
  constexpr int kRepetitions = 32;
  if (c.threads < 2) return {};
  proptest::Case alone = c;
  alone.threads = 1;
  const auto fails_alone = [&] {
    const Verdict verdict = worker::check(law, kernel, alone).verdict;
    return verdict == Verdict::violated || verdict == Verdict::crashed;
  };
  // In turn, so that neither has the later calls of a process for itself.
  int failed = 0;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    failed += alike(worker::check(law, kernel, c)) ? 1 : 0;
    if (fails_alone()) return {};
  }
  if (failed == 0) return {};
  if (failed == kRepetitions) {
    return {
        fmt::format("threads: fails in every one of {} repetitions with {} threads and in none "
                    "with one: ",
                    kRepetitions, c.threads)};
  }
  // A failure at each so-many-th call may have met those with several threads each time.
  worker::restart(kernel);
  for (int check = 0; check < 4 * kRepetitions; ++check) {
    if (fails_alone()) return {};
  }
  // So many that it fails in one of them but for one time in e^5.
  constexpr int kOdds = 5;
  return {fmt::format("race: fails in {} of {} repetitions with {} threads and in none with one: ",
                      failed, kRepetitions, c.threads),
          (kOdds * kRepetitions + failed - 1) / failed};
}

}  // namespace attest::certify
