#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.hpp"
#include "core/verdict.hpp"
#include "reference/bounds/bounds.hpp"

namespace attest::proptest {

/// One output compared element by element.
struct Comparison {
  std::string output;  // "O", "LSE", "dQ", …
  Verdict verdict = Verdict::passed;
  std::int64_t elements = 0;
  std::array<std::int64_t, 4> worst_index{};
  double got = 0, exact = 0, bound = 0;
  double ratio = 0;         // worst error / probabilistic bound; infinity for a wrong class
  std::int64_t erring = 0;  // elements that may have errors of their own: those with a sigma
  double aggregate = 0;     // rms(error / sigma) over them
  std::string reason;       // "" when passed, else one sentence with the worst element
};

/// In the reason of a comparison that asks for equal bits.
inline constexpr std::string_view kExactly = "must be exactly";

/// Tells for every entry of a tensor's batch axis and every position on its sequence axis whether
/// what lies there is judged.
using Judged = std::vector<std::vector<std::uint8_t>>;

/// Compares classes first (NaN, +inf, -inf, finite), then err <= bound, so that NaN fails.
/// Above the deterministic bound the verdict is `violated`, between the two `improbable`; an
/// aggregate above its limit over enough elements is `improbable` too. A result that passes is
/// `vacuous` where an element has no bound.
/// Requires: equal shapes. Else throws InternalError.  [proptest/judge/compare_test]
/// With `judged` (not null) only at those positions, and the reason counts those elements alone.
Comparison compare(const TensorView& got, const Tensor& exact, const reference::ErrorBound& bound,
                   const Judged* judged = nullptr);

/// Compares two results of a kernel that should agree within the sum of their bounds.
Comparison compare_pair(const TensorView& first, const TensorView& second,
                        const reference::ErrorBound& first_bound,
                        const reference::ErrorBound& second_bound);

/// Compares bit for bit; +0 and -0 count as equal.
Comparison compare_bits(const TensorView& got, const TensorView& expected);

/// Tells whether compare_bits passes.
bool identical(const Tensor& a, const Tensor& b);

/// Tells whether compare passes.
bool passes(const TensorView& got, const Tensor& exact, const reference::ErrorBound& bound,
            const Judged* judged = nullptr);

}  // namespace attest::proptest
