#pragma once

#include <string>

#include "core/abi/attest_kernel.h"

/// Demands of a call beyond its kernel's description, read from attest_kernel.h's text and from the
/// call's arguments alone: nothing here knows how problems are drawn or laws ask for them.
namespace attest::certify::testing {

/// Returns "" for a call inside the claims; else what is outside.
std::string outside_claims(const attest_description& claims, const attest_forward_args& call);
std::string outside_claims(const attest_description& claims, const attest_backward_args& call);
std::string outside_claims(const attest_description& claims, const attest_loss_args& call);

}  // namespace attest::certify::testing
