#pragma once

#include <string>

#include "certify/worker/process/isolated_kernel.hpp"

/// The libraries and the program that the tests of isolation use.
namespace attest::certify::worker::testing {

/// With the program of this build.
Limits limits();

/// The file of a test library of fixtures/plugins.
std::string plugin(const std::string& name);

/// The kernel "PATH:suffix"; throws InternalError when there is none.
const attest_kernel& kernel_called(const IsolatedKernels& kernels, const std::string& suffix);

/// 48 bytes of O: with the alignment of 64 there is room on both sides before the guard pages.
proptest::Case small_case();

}  // namespace attest::certify::worker::testing
