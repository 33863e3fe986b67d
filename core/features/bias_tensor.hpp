#pragma once

#include <vector>

#include "core/problem.hpp"
#include "core/tensor.hpp"

namespace attest {

/// Returns the axes of the bias of a call: all extents of the problem, where `laid_out`, the axes
/// of problem.bias_axes() with strides, has extent 1 for those that the bias does not depend on.
/// Their strides become 0.
std::vector<Axis> broadcast_bias(const Problem& problem, std::vector<Axis> laid_out);

/// Writes the problem's bias to the elements of such a tensor.
void fill_bias(const Problem& problem, const TensorView& bias);

}  // namespace attest
