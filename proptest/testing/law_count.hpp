#pragma once

#include <cstdint>
#include <string>

#include "core/testing/catch.hpp"
#include "proptest/generator.hpp"
#include "proptest/laws/law.hpp"

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

/// Checks one law on the first cases of the smoke tier that a kernel claims: none may refuse it,
/// nor may the kernel refuse what it claims.
inline LawCount count_law(const Law& law, const attest_kernel& kernel, std::uint64_t seed,
                          std::uint64_t cases) {
  LawCount count;
  for (std::uint64_t index = 0; index < cases; ++index) {
    const Case c = generate(kernel.description, Tier::smoke, seed, index);
    const LawResult result = law.check(kernel, c);
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
