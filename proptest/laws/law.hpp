#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/verdict.hpp"
#include "proptest/judge/compare.hpp"
#include "proptest/judge/run.hpp"

namespace attest::proptest {

/// Result of one law for one kernel on one case.
struct LawResult {
  Verdict verdict = Verdict::unsupported;
  std::string message;                  // why, when not passed
  std::vector<Comparison> comparisons;  // outputs compared with the truth, for worst ratios
};

/// Use that a law makes of the mask of a case.
enum class MaskUse : std::uint8_t {
  kept,  // or what it makes of the mask says as much of it: its pairs with keys and values reversed
  replaced  // it has masks of its own, or none: it says nothing about the case's
};

/// A property every correct kernel has. The check may change the case's problem where the law
/// needs it (no mask, equal lengths); it never throws for what a kernel does.
struct Law {
  std::string_view name;
  std::string_view statement;
  std::function<LawResult(const attest_kernel&, const Case&)> check;
  std::uint32_t directions = ATTEST_FORWARD | ATTEST_BACKWARD;  // it says something about one of
  std::uint32_t features = 0;  // and only where one of these is claimed; 0: about any kernel
  MaskUse mask = MaskUse::kept;
};

/// Tells whether the law says anything about a kernel that claims `description`.
/// [proptest/suites/sparsity_test "a kernel without any form"]
bool concerns(const Law& law, const attest_description& description);

/// All laws, in the order they are reported.
const std::vector<Law>& laws();

/// Throws InvalidProblem with the nearest name.
const Law& find_law(std::string_view name);

}  // namespace attest::proptest
