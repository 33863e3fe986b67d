#include "core/features/head_mask_array.hpp"

#include <algorithm>
#include <cstddef>

#include "core/features/axes_text.hpp"

namespace attest {
namespace {

// Bytes from the first element to the last of these strides.
std::int64_t span_of(const std::array<std::int64_t, 4>& extents, const std::int64_t* strides) {
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] == 0) return 0;
    last += (extents[axis] - 1) * strides[axis];
  }
  return last + 1;
}

}  // namespace

std::array<std::int64_t, 4> head_mask_strides(const Problem& problem) {
  constexpr std::uint64_t kPaddings = 3;
  const std::vector<Axis> axes = problem.head_mask_axes();
  const std::uint64_t seed = problem.head_mask.seed;
  const std::array<std::size_t, 2> outer{seed % 2 == 0 ? 1u : 0u, seed % 2 == 0 ? 0u : 1u};
  std::array<std::int64_t, 4> strides{};
  std::int64_t stride = 1;
  const auto lay = [&](std::size_t axis, std::int64_t padding) {
    strides[axis] = stride;
    stride *= std::max<std::int64_t>(axes[axis].extent, 1) + padding;
  };
  lay(3, static_cast<std::int64_t>(seed % kPaddings));
  lay(2, 0);
  for (const std::size_t axis : outer) lay(axis, 0);
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    if (!problem.head_mask.axes[axis]) strides[axis] = 0;
  }
  return strides;
}

std::vector<std::uint8_t> head_mask_bytes(const Problem& problem) {
  if (problem.head_mask.kind == HeadMask::Kind::none) return {};
  const std::vector<Axis> axes = problem.head_mask_axes();
  const std::array<std::int64_t, 4> extents{axes[0].extent, axes[1].extent, axes[2].extent,
                                            axes[3].extent};
  const std::array<std::int64_t, 4> strides = head_mask_strides(problem);
  // One byte where there is no element, so that the mask has an address.
  const std::int64_t bytes = std::max<std::int64_t>(span_of(extents, strides.data()), 1);
  std::vector<std::uint8_t> visible(static_cast<std::size_t>(bytes), 1);
  for_each_index(extents, [&](auto b, auto h, auto i, auto j) {
    const std::int64_t at = b * strides[0] + h * strides[1] + i * strides[2] + j * strides[3];
    visible[static_cast<std::size_t>(at)] = problem.head_mask(b, h, i, j) ? 1 : 0;
  });
  return visible;
}

std::int64_t head_mask_span(const attest_problem& problem) {
  return std::max<std::int64_t>(
      span_of({problem.batch, problem.num_heads_q, problem.seqlen_q, problem.seqlen_k},
              problem.mask.per_head->strides),
      1);
}

}  // namespace attest
