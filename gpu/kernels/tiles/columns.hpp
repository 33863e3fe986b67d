#pragma once

namespace attest::gpu {

/// The columns of 32 that a lane holds of a row, as flash2 and its like are compiled for them.
inline constexpr int kMostColumns = 576;

/// launch.operator()<kColumns>() of the smallest kernel that holds rows of `columns`.
///
/// Requires: at most kMostColumns.
template <class Launch>
auto with_columns(int columns, const Launch& launch) {
  if (columns <= 32) return launch.template operator()<1>();
  if (columns <= 64) return launch.template operator()<2>();
  if (columns <= 128) return launch.template operator()<4>();
  if (columns <= 256) return launch.template operator()<8>();
  return launch.template operator()<18>();
}

}  // namespace attest::gpu
