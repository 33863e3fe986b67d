#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/testing/catch.hpp"
#include "proptest/laws/law.hpp"
#include "proptest/values/generator.hpp"

namespace attest::proptest {

struct LawCount {
  int passed = 0, vacuous = 0, unsupported = 0;

  LawCount& operator+=(const LawCount& other) {
    passed += other.passed;
    vacuous += other.vacuous;
    unsupported += other.unsupported;
    return *this;
  }
};

/// How a law is checked on one case.
using Check = std::function<LawResult(const Law&, const attest_kernel&, const Case&)>;

inline LawResult check_plainly(const Law& law, const attest_kernel& kernel, const Case& c) {
  return law.check(kernel, c);
}

/// Checks one law on the first cases of the smoke tier that a kernel claims: none may refuse it,
/// nor may the kernel refuse what it claims.
inline LawCount count_law(const Law& law, const attest_kernel& kernel, std::uint64_t seed,
                          std::uint64_t cases, const Check& check = check_plainly) {
  LawCount count;
  for (std::uint64_t index = 0; index < cases; ++index) {
    const Case c = generate(kernel.description, Tier::smoke, seed, index);
    const LawResult result = check(law, kernel, c);
    INFO(kernel.description.name << " " << law.name << " " << c.problem.to_string() << " values="
                                 << name(c.values) << " seed=" << c.seed << ": " << result.message);
    CHECK(result.verdict != Verdict::violated);
    CHECK(result.verdict != Verdict::improbable);
    CHECK(result.verdict != Verdict::crashed);
    CHECK(result.message.rfind("refused although claimed", 0) != 0);
    count.passed += result.verdict == Verdict::passed ? 1 : 0;
    count.vacuous += result.verdict == Verdict::vacuous ? 1 : 0;
    count.unsupported += result.verdict == Verdict::unsupported ? 1 : 0;
  }
  return count;
}

}  // namespace attest::proptest
