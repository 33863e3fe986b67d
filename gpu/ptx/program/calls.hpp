#pragma once

#include "gpu/ptx/text/module.hpp"

namespace attest::ptx {

/// The function with the text of those that it calls in place of each call: a call's parameters are
/// variables of the thread, and a `ret` goes on behind the call.
///
/// Throws InvalidProblem for calls through pointers, of functions that call themselves or have no
/// text (but device-side assertions, which are traps, and printf, which prints nothing), for
/// parameters that are no variables or fewer or smaller than the function's, and for a text that
/// grows beyond what is carried out. [gpu/ptx/program/calls_test]
Function with_calls(const Module& module, const Function& function);

}  // namespace attest::ptx
