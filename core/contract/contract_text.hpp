#pragma once

#include <string>

#include "core/abi/attest_kernel.h"

namespace attest {

/// Returns the fields of a contract that differ from the plain one, as the package's `numerics` and
/// attest certify --numerics spell them, "p_cast=bf16,exp_ulps=4"; "" for the plain contract:
/// float32 sums (float64 of float64 tensors) to nearest, exp within 2 ulp. An exp_ulps_of of one
/// dtype is `exp_ulps_of[bf16]=…`.  [python/api/contract_test "spelled"]
std::string contract_text(const attest_numerics& numerics);

}  // namespace attest
