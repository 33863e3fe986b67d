#pragma once

#include "gpu/ptx/program/program.hpp"
#include "gpu/ptx/text/module.hpp"

namespace attest::ptx {

/// Has other instructions that use registers of a warpgroup's products look whether these have
/// ended. `function`: whose statements the program's instructions are, one by one.
/// [gpu/ptx/products/wgmma_test]
void watch_product_registers(Program& program, const Function& function);

}  // namespace attest::ptx
