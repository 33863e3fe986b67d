#include "core/features/bias_tensor.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/features/axes_text.hpp"

namespace attest {

std::vector<Axis> broadcast_bias(const Problem& problem, std::vector<Axis> laid_out) {
  const std::array<std::int64_t, 4> extents{problem.batch, problem.num_heads_q, problem.seqlen_q,
                                            problem.seqlen_k};
  for (std::size_t axis = 0; axis < laid_out.size(); ++axis) {
    laid_out[axis].extent = extents[axis];
    if (!problem.bias.axes[axis]) laid_out[axis].stride = 0;
  }
  return laid_out;
}

void fill_bias(const Problem& problem, const TensorView& bias) {
  const auto once = [&](std::size_t axis) {
    return problem.bias.axes[axis] ? bias.extent(axis)
                                   : std::min<std::int64_t>(1, bias.extent(axis));
  };
  for_each_index({once(0), once(1), once(2), once(3)}, [&](auto b, auto h, auto i, auto j) {
    bias.set(problem.bias_at(b, h, i, j), b, h, i, j);
  });
}

}  // namespace attest
