#pragma once

#include "gpu/ptx/execution/block_run.hpp"

namespace attest::ptx {

/// Tells whether all lanes of a warp carry out an instruction that is `.sync.aligned`; reports
/// those that are elsewhere.
bool is_whole(const Warp& warp, const Instruction& in);

}  // namespace attest::ptx
