#pragma once

#include "core/problem.hpp"
#include "core/testing/kernel_call.hpp"

/// A call with K and V in pages beside the same call without.
namespace attest::testing {

/// Returns the problem without pages.
Problem without_pages(Problem problem);

/// Gives a call of that problem the values of one with pages: Q, and its keys in their order.
void take_values(const Call& paged, Call& in_order);

}  // namespace attest::testing
