#pragma once

namespace attest::certify {

/// Multiply-add steps per second on one thread, in flop/s (2 per step), with operands in registers
/// and the two operations rounded apart, as everywhere in this project: the ceiling of the CPU
/// kernels. The best of a few register blockings in about 10 ms.
double arithmetic_peak_flops();

}  // namespace attest::certify
