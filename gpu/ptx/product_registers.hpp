#pragma once

#include "gpu/ptx/module.hpp"
#include "gpu/ptx/program.hpp"

namespace attest::ptx {

/// Has other instructions that use registers of a warpgroup's products look whether these have
/// ended. `function`: whose statements the program's instructions are, one by one.
/// [gpu/ptx/wgmma_test]
void watch_product_registers(Program& program, const Function& function);

}  // namespace attest::ptx
