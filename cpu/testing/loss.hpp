#pragma once

#include <cstdint>

#include "core/testing/kernel_call.hpp"
#include "cpu/testing/naive.hpp"

/// The gradient of the attention loss (Li et al. 2024) in closed form and float64, with an
/// a-priori bound of float32 errors.
namespace attest::cpu::testing {

struct LossExpected {
  Bounded dX, dY;
};

/// How the scores of the gradient are multiplied out: (A1 X) A2^T or A1 (X A2^T).
enum class ScoreProduct : std::uint8_t { rows_first, keys_first };

LossExpected loss_closed_form(const attest::testing::LossCall& call,
                              ScoreProduct product = ScoreProduct::rows_first);

}  // namespace attest::cpu::testing
