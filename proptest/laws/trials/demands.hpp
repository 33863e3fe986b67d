#pragma once

#include <string>

#include "core/problem.hpp"
#include "proptest/laws/law.hpp"

/// Results that a kernel must give beside inputs that are not finite.
namespace attest::proptest {

/// Demand on one element: the bits of the call without them, a class, or nothing.
enum class Demand : std::uint8_t { same, nan, infinite, infinite_or_nan, none };

/// Demands on every element of O and LSE, `same` at first.
class Demands {
 public:
  explicit Demands(const Problem& problem);

  /// Asks for an element of O; infinite: of the sign.
  void ask(Demand demand, std::int64_t b, std::int64_t i, std::int64_t h, std::int64_t c,
           double sign = 1);

  /// Asks for all columns of a row of O, and for its LSE.
  void ask_row(Demand demand, std::int64_t b, std::int64_t i, std::int64_t h);

  /// Judges a run beside the one without such inputs. A violation's message begins with `what`.
  /// [proptest/laws/trials/demands_test]
  LawResult judge(const KernelRun& before, const KernelRun& after, const std::string& what) const;

 private:
  Tensor O_, LSE_;  // Demand of each element
  Tensor O_sign_;
};

}  // namespace attest::proptest
