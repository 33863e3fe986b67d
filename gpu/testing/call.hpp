#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/problem.hpp"
#include "core/testing/kernel_call.hpp"
#include "gpu/simt/block.hpp"

/// One call of an emulated kernel, for the tests of this room.
namespace attest::gpu::testing {

using attest::testing::bits_of;
using attest::testing::loss_problem;
using attest::testing::LossCall;
using attest::testing::StoredTensor;
using attest::testing::unwritten;

/// A call whose inputs depend on the problem alone; a sparsity pattern comes as a kernel of these
/// features takes it.
struct Call : attest::testing::Call {
  explicit Call(const std::string& text, std::uint32_t features = ATTEST_BOOLEAN_MASK);

  /// O, and LSE if the kernel writes that.
  std::vector<std::uint64_t> forward_bits(const attest_kernel& kernel) const;
};

/// Shapes and masks that every kernel is tried on.
const std::vector<const char*>& problems();

/// The same as a problem of 16 bits where a kernel takes no float32, of each type it takes.
std::vector<std::string> spellings_for(const attest_kernel& kernel, const char* text);

/// The first of them.
std::string spelled_for(const attest_kernel& kernel, const char* text);

/// Packed sequences and extents of zero.
const std::vector<const char*>& sequence_problems();

/// Both, and what costs more: wide heads.
const std::vector<const char*>& backward_problems();

/// Block masks: blocks smaller than a tile, as large, larger, ragged and of one pair; masks of no
/// block, of all and with empty rows and columns of blocks; with windows, lengths, packed
/// sequences and groups of heads.
const std::vector<const char*>& block_problems();

/// problems(), and block_problems() for a kernel of these ATTEST_* features that takes block masks.
std::vector<const char*> problems_of(std::uint32_t features);

/// Orders of lanes and blocks with every check that the build has: three, four in ci/nightly.
std::vector<simt::Emulation> checked_orders();

/// Sums over the tiles that hold a visible pair, of one head and all batch entries, pair by pair
/// from the problem: how many they are; queries and keys of those tiles; words of 32 bits for the
/// pairs of those that hold invisible ones too; queries and keys of blocks that have one; all keys.
/// And the blocks of queries and of keys, with a tile or without.
struct TileWords {
  std::int64_t tiles = 0, tile_queries = 0, tile_keys = 0, bit_words = 0;
  std::int64_t queries = 0, keys = 0, all_keys = 0;
  std::int64_t query_blocks = 0, key_blocks = 0;
};
TileWords visited_tiles(const Problem& problem, std::int64_t block_q, std::int64_t block_k);

}  // namespace attest::gpu::testing
