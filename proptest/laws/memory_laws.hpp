#pragma once

#include <cstdint>

#include "proptest/values/values.hpp"

namespace attest::proptest {

/// The values with one element of Q, K, V and dO changed, each at a place of the seed's: no
/// neighbour, no sum and, most likely, no sample of the inputs is another.
/// [proptest/suites/same_memory_test "one element of each input"]
InputValues with_one_changed(const Problem& problem, const InputValues& values, std::uint64_t seed);

}  // namespace attest::proptest
