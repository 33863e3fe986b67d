#pragma once

#include <cstdint>
#include <string_view>

namespace attest {

/// Finding about a kernel, one output or one case.
///
///   passed       compared, and every element within its bound
///   improbable   between the probabilistic and the deterministic bound: repeat before saying more
///   violated     a law or a proved bound is broken
///   vacuous      the comparison could not have failed, so it counts for nothing
///   unsupported  the kernel does not claim the case, or no bound is derived for it
///   crashed      the kernel died or hung
enum class Verdict : std::uint8_t { passed, improbable, violated, vacuous, unsupported, crashed };

std::string_view name(Verdict verdict);

/// The graver of two: crashed > violated > improbable > passed > vacuous > unsupported.
Verdict graver(Verdict a, Verdict b);

}  // namespace attest
