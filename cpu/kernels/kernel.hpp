#pragma once

#include <cstddef>
#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "core/moved_words.hpp"

namespace attest::cpu {

/// The kernels of this room.
const attest_kernel& standard_kernel();
const attest_kernel& flash2_kernel();
CountedCode flash2_counted();
const attest_kernel& flash2_bf16_kernel();
CountedCode flash2_bf16_counted();
const attest_kernel& loss_gradient_kernel();

/// Returns the claims that all kernels of this room share: f32, bf16, f16 inputs with f32
/// arithmetic and every feature of the ABI.
attest_description common_description(const char* name, const char* summary, const char* schedule);

/// Returns ATTEST_OK where the problem's dtype is a claimed one, else ATTEST_UNSUPPORTED.
attest_status supported(const attest_problem& problem);

/// Floats of a cache line, at whose multiples vectors should lie.
inline constexpr std::int64_t kLineFloats = 16;

/// Returns the first float from `floats` on that begins a cache line: fewer than kLineFloats
/// further.
inline float* at_line(float* floats) {
  constexpr std::uintptr_t kLine = kLineFloats * sizeof(float);
  const auto address = reinterpret_cast<std::uintptr_t>(floats);
  return floats + (kLine - address % kLine) % kLine / sizeof(float);
}

/// One thread's part of the workspace, handed out piece by piece.
class Arena {
 public:
  Arena(void* workspace, std::size_t floats_per_thread, int thread)
      : next_(static_cast<float*>(workspace) +
              floats_per_thread * static_cast<std::size_t>(thread)) {}

  float* take(std::int64_t floats) {
    float* piece = next_;
    next_ += floats;
    return piece;
  }

 private:
  float* next_;
};

}  // namespace attest::cpu
