#pragma once

#include <algorithm>
#include <cstdint>

#include "fixtures/emulated/emulation.hpp"

namespace attest::proptest {

/// The contract that the power tables judge wrong kernels by: P cast to the tensors' type, at least
/// four tiles of keys where there are 16.
inline fixtures::Emulation contract_for(DType dtype, std::int64_t keys) {
  fixtures::Emulation contract;
  contract.name = "emulated/contract";
  contract.block_k = std::clamp<std::int64_t>(keys / 4, 4, 64);
  if (dtype != DType::f32) contract.p_cast = static_cast<std::uint8_t>(1 + abi(dtype));
  return contract;
}

}  // namespace attest::proptest
