#pragma once

#include <functional>

namespace attest::certify::cli {

/// Exit statuses of what a program itself cannot do: usage or bad input, an error of its own.
inline constexpr int kUsage = 2, kInternal = 5;

/// The exit status of a program: what `run` returns. An exception is one line on the standard
/// error, `attest: ...`: InvalidProblem and too little memory are kUsage, any other kInternal. A
/// standard output that could not be written is told at the end, and turns 0 into kUsage.
/// [certify/cli/tests/streams_test]
int guarded(const std::function<int()>& run);

}  // namespace attest::certify::cli
