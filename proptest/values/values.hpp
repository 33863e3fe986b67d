#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem.hpp"
#include "core/tensor.hpp"

namespace attest::proptest {

/// Families of input values. Each exists for a reason, which `reason` gives.
enum class Values : std::uint8_t {
  normal,
  x4,
  x10,
  all_positive,
  one_hot,
  uniform,
  cancelling,
  rising_maximum,
  halves,
  ties,
  logits_1e4,
  duplicate_keys,
  indicator,
  ones,
  positive_v,
  negative_logits,
  maximum_last,
  denormals,
  integers,
  nan,  // these two are refused: no campaign draws them
  infinite
};

std::string_view name(Values values);
std::string_view reason(Values values);
const std::vector<Values>& all_values();      // what campaigns draw: finite ones
const std::vector<Values>& refused_values();  // those that `require_answer` refuses

/// Throws InvalidProblem with the nearest name.
Values parse_values(std::string_view text);

/// Input values in the logical axis order of core/problem.hpp, f64 but rounded to the dtype.
struct InputValues {
  Tensor Q, K, V, dO;
  Tensor dLSE;  // rounded to f32
  /// In slots of pages that hold no key, of a problem with paged K and V.
  double unused = std::numeric_limits<double>::quiet_NaN();
};

/// The family's values for a problem: a function of problem, family and seed only.
/// With strides=broadcast every K/V head repeats head 0. f16 values keep sums below overflow.
/// [proptest/values/case_test "values are finite"]
InputValues make_values(const Problem& problem, Values values, std::uint64_t seed);

/// Tells whether the narrower of K and V holds what the problem's shared_kv says of the wider. Laws
/// that change one of the two have inputs that lie apart.
bool share_memory(const Problem& problem, const InputValues& values);

/// Throws InvalidProblem at the first element of an input that is NaN or infinite, with its place:
/// no contract says what such inputs give. Not even in keys that no query sees: 0 * NaN reaches the
/// result of many correct kernels, and none declares that its own does not.
/// [proptest/values/case_test "NaN and infinity are refused"]
void require_answer(const Problem& problem, const InputValues& values);

}  // namespace attest::proptest
