#pragma once

#include <optional>

namespace attest::certify {

/// Multiply-add steps per second on one thread, in flop/s (2 per step), with operands in registers,
/// fused where the processor can. The best of a few register blockings in about 20 ms.
double arithmetic_peak_flops();

/// The same where nothing disturbs it: what no kernel in float32 exceeds, but one that splits its
/// operands for matrix units. The best of samples taken for about
/// a second, so that what disturbs some does not matter. Nothing on processors whose vectors
/// another instruction set may widen: on all but x86-64.
std::optional<double> arithmetic_ceiling_flops();

}  // namespace attest::certify
