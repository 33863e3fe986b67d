#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/problem.hpp"
#include "core/rng.hpp"
#include "core/tensor.hpp"
#include "gpu/simt/block.hpp"

/// One float32 call of an emulated kernel, for the tests of this room.
namespace attest::gpu::testing {

/// Packed; every bit set (NaN) until it is written.
class Values {
 public:
  Values(const char* name, const std::vector<Axis>& axes);
  const attest_tensor* abi() const { return form_.get(); }
  void fill(Rng& rng);  // normal values
  std::vector<std::uint32_t> bits() const;

 private:
  std::size_t count_;
  Tensor tensor_;
  AbiTensor form_;
};

/// Inputs depend on the problem alone.
struct Call {
  explicit Call(const std::string& text);
  attest_forward_args forward_arguments() const;
  attest_backward_args backward_arguments();

  Problem problem;
  AbiProblem form;
  Values Q, K, V, O, LSE, dO, dLSE, dQ, dK, dV;

 private:
  std::vector<float> workspace_;
};

std::vector<std::uint32_t> bits_of(const std::vector<const Values*>& tensors);

/// Shapes and masks that every kernel is tried on.
const std::vector<const char*>& problems();

/// These, and what costs more: packed sequences, a boolean mask, wide heads.
const std::vector<const char*>& backward_problems();

/// Four orders of lanes and blocks with every check that the build has.
std::vector<simt::Emulation> checked_orders();

/// Sums over the tiles that hold a visible pair, of one head and all batch entries, pair by pair
/// from the problem: queries and keys of those tiles; queries and keys of blocks that have one;
/// all keys.
struct TileWords {
  std::int64_t tile_queries = 0, tile_keys = 0, queries = 0, keys = 0, all_keys = 0;
};
TileWords visited_tiles(const Problem& problem, std::int64_t block_q, std::int64_t block_k);

}  // namespace attest::gpu::testing
