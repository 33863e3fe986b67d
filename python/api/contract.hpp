#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/abi/attest_kernel.h"

/// Spells the contract of a kernel's arithmetic in one line.
namespace attest::python {

/// Names a contract that kernel authors know, and spells it by fields.
struct Preset {
  const char *name, *fields;
};

/// Returns f32, p_cast_to_input, tensor_core, autodiff, eager, tf32.
const std::vector<Preset>& presets();

/// Parses a contract into `numerics`, `empty_row` and `past_length` of a description that is 0
/// else: `tensor_core`, `p_cast=bf16,exp_ulps=4`, `tensor_core,empty_row=nan,lse_base=two`. Fields
/// are those of attest_numerics, `empty_row` and `past_length`, a preset may come first, "" is f32.
/// Types are f64, f32, bf16, f16 and `input`, that of the tensors.
/// Throws InvalidProblem with the nearest name.  [python/api/contract_test]
attest_description parse_contract(std::string_view text);

/// Returns the kernel under the contract, which takes the place of the description's numerics,
/// empty_row and past_length; the kernel itself where the contract is NULL. Throws as
/// parse_contract does.
attest_kernel under(const attest_kernel& kernel, const char* contract);

}  // namespace attest::python
