#pragma once

namespace attest::gpu::runtime {

/// The version of CUDA whose runtime library this is: 12 or 13.
int runtime_major();

}  // namespace attest::gpu::runtime
