#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/problem.hpp"
#include "core/rng.hpp"
#include "core/tensor.hpp"
#include "gpu/simt/block.hpp"

/// One call of an emulated kernel, for the tests of this room.
namespace attest::gpu::testing {

/// A tensor in memory of its own; every bit set (NaN) until it is written. Strides other than
/// packed, padded, transposed and interleaved ones are taken as packed.
class Values {
 public:
  Values(const char* name, DType dtype, std::vector<Axis> axes, attest::Strides strides);
  const attest_tensor* abi() const { return form_.get(); }
  void fill(Rng& rng);  // normal values
  /// value(row, column) for every head and batch entry; a tensor like LSE has one column.
  template <class Value>
  void fill_rows(const Value& value) {
    for (std::int64_t b = 0; b < view_.extent(0); ++b) {
      for (std::int64_t i = 0; i < view_.extent(1); ++i) {
        for (std::int64_t j = 0; j < view_.extent(2); ++j) {
          if (view_.rank() == 3) view_.set(static_cast<double>(value(j, 0)), b, i, j);
          for (std::int64_t c = 0; view_.rank() == 4 && c < view_.extent(3); ++c) {
            view_.set(static_cast<double>(value(i, c)), b, i, j, c);
          }
        }
      }
    }
  }
  /// All ones where nothing was written, whatever the width.
  std::vector<std::uint32_t> bits() const;

 private:
  std::vector<std::byte> storage_;
  TensorView view_;
  AbiTensor form_;
};

/// Inputs depend on the problem alone, a sparsity pattern comes as a kernel of these features takes
/// it.
struct Call {
  explicit Call(const std::string& text, std::uint32_t features = ATTEST_BOOLEAN_MASK);
  attest_forward_args forward_arguments() const;
  /// With the workspace that the kernel asks for, all NaN, and LSE if it writes that.
  attest_forward_args forward_arguments(const attest_kernel& kernel);
  /// With a workspace for D alone.
  attest_backward_args backward_arguments();
  attest_backward_args backward_arguments(const attest_kernel& kernel);
  /// O, and LSE if the kernel writes that.
  std::vector<std::uint32_t> output_bits(const attest_kernel& kernel) const;

  Problem problem;
  AbiProblem form;
  Values Q, K, V, O, LSE, dO, dLSE, dQ, dK, dV;

 private:
  template <class Args>
  void set_workspace(Args& args, std::size_t bytes);

  std::vector<float> workspace_;  // NaN
};

std::vector<std::uint32_t> bits_of(const std::vector<const Values*>& tensors);

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

/// Four orders of lanes and blocks with every check that the build has.
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
