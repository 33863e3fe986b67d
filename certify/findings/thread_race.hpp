#pragma once

#include <string>

#include "certify/findings/state_finding.hpp"

namespace attest::certify {

/// Words for a message, and so many checks in one process as show the failure again.
struct Race {
  std::string words;
  int checks = 1;
};

/// Repeats a case that needs several threads, with them and with one in turn. Returns a sentence's
/// begin, "race: fails in 5 of 32 repetitions with 4 threads and in none with one: ", where it
/// fails in some with several threads and in none with one; "threads: fails in every one of ..."
/// where it fails in all of them; else "". A failure that comes of the number of calls alone is
/// none: with one thread it does not come in four times as many. Requires: the case has several
/// threads, else "".  [certify/findings/thread_race_test]
Race race_of(const proptest::Law& law, const attest_kernel& kernel, const proptest::Case& c,
             const Alike& alike);

}  // namespace attest::certify
