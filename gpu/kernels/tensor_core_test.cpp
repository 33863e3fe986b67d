#include <set>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/kernels/kernels.hpp"
#include "gpu/kernels/square_tiled/square_tiled.hpp"
#include "gpu/kernels/square_tiled/square_tiled_bwd.hpp"
#include "gpu/kernels/tiles/fragments.cuh"
#include "gpu/testing/broken_tensor_core.hpp"
#include "gpu/testing/exact_cases.hpp"

/// Common properties of the kernels on tensor cores.
namespace attest::gpu {
namespace {

using testing::TensorCoreBug;
using testing::wrong_gradients;
using testing::wrong_where_all_keys_count;
using testing::wrong_where_one_key_counts;
using testing::wrong_where_two_keys_count;
using Kernels = std::vector<const EmulatedKernel*>;

testing::RunForward forward_of(const EmulatedKernel& kernel) {
  return [&](EmulatedForward& call) { return kernel.directions().forward.run(call, {}); };
}

testing::RunForward flash2_with(TensorCoreBug bug) {
  return [bug](EmulatedForward& call) { return flash2_tensor_core_with(bug, call, {}); };
}

/// Counts the banks, of 32 of a word each, that eight rows of 16 bytes meet.
std::size_t banks(int stride) {
  std::set<int> met;
  for (int word = 0; word < 8 * 4; ++word) met.insert((word / 4 * stride + word % 4) % 32);
  return met.size();
}

TEST_CASE("eight rows meet all banks", "[gpu][tensor_core]") {
  for (int columns = 1; columns <= WidestTensorTile::kMostColumns; ++columns) {
    INFO(columns);
    CHECK(banks(pair_stride(columns)) == 32);
    CHECK(pair_stride(columns) % 4 == 0);  // rows begin at a multiple of 16 bytes
    CHECK(2 * pair_stride(columns) >= columns);
    CHECK(banks(padded_columns(columns) / 2) < 32);  // without the space between rows
  }
}

TEST_CASE("tensor cores: each element of a fragment meets its own", "[gpu][tensor_core]") {
  for (const EmulatedKernel* kernel :
       Kernels{&flash2_tensor_core_kernel(), &standard_tensor_core_kernel(),
               &split_kv_tensor_core_kernel(), &square_tiled_tensor_core_kernel(),
               &hybrid_tensor_core_kernel()}) {
    for (const char* dtype : {"bf16", "f16"}) {
      INFO(kernel->description().name << " " << dtype);
      CHECK(wrong_where_one_key_counts(*kernel, dtype, forward_of(*kernel)) == 0);
    }
  }
  const EmulatedKernel& flash2 = flash2_tensor_core_kernel();
  CHECK(wrong_where_one_key_counts(flash2, "f16", flash2_with(TensorCoreBug::none)) == 0);
  CHECK(wrong_where_one_key_counts(flash2, "f16", flash2_with(TensorCoreBug::swaps_fragment)) > 0);
  CHECK(wrong_where_one_key_counts(flash2, "f16", flash2_with(TensorCoreBug::waits_for_too_few)) >
        0);
  CHECK(wrong_where_one_key_counts(square_tiled_tensor_core_kernel(), "f16",
                                   testing::square_tiled_with_swapped_fragment) > 0);
}

TEST_CASE("tensor cores: keys that do not exist do not count", "[gpu][tensor_core]") {
  for (const EmulatedKernel* kernel :
       Kernels{&flash2_tensor_core_kernel(), &split_kv_tensor_core_kernel(),
               &square_tiled_tensor_core_kernel(), &hybrid_tensor_core_kernel()}) {
    for (const char* dtype : {"bf16", "f16"}) {
      INFO(kernel->description().name << " " << dtype);
      CHECK(wrong_where_all_keys_count(*kernel, dtype, forward_of(*kernel)) == 0);
    }
  }
  const EmulatedKernel& flash2 = flash2_tensor_core_kernel();
  CHECK(wrong_where_all_keys_count(flash2, "f16", flash2_with(TensorCoreBug::none)) == 0);
  CHECK(wrong_where_all_keys_count(flash2, "f16", flash2_with(TensorCoreBug::sees_past_the_end)) >
        0);
}

TEST_CASE("tensor cores: P is cast once, after its row sum", "[gpu][tensor_core]") {
  for (const EmulatedKernel* kernel :
       Kernels{&flash2_tensor_core_kernel(), &split_kv_tensor_core_kernel()}) {
    for (const char* dtype : {"bf16", "f16"}) {
      INFO(kernel->description().name << " " << dtype);
      CHECK(wrong_where_two_keys_count(*kernel, dtype, forward_of(*kernel)) == 0);
    }
  }
  const EmulatedKernel& flash2 = flash2_tensor_core_kernel();
  CHECK(wrong_where_two_keys_count(flash2, "f16", flash2_with(TensorCoreBug::none)) == 0);
  CHECK(wrong_where_two_keys_count(flash2, "f16", flash2_with(TensorCoreBug::casts_twice)) > 0);
}

TEST_CASE("tensor cores: where one key counts, gradients are exact", "[gpu][tensor_core]") {
  // The second leaves a tile of queries in part empty that no tile was in before.
  for (const std::int64_t queries : {70, 20}) {
    for (const EmulatedKernel* kernel :
         Kernels{&flash2_tensor_core_kernel(), &key_stationary_tensor_core_kernel(),
                 &square_tiled_bwd_tensor_core_kernel()}) {
      for (const char* dtype : {"bf16", "f16"}) {
        INFO(kernel->description().name << " " << dtype << " " << queries);
        CHECK(wrong_gradients(*kernel, dtype, queries, [&](EmulatedBackward& call) {
                return kernel->directions().backward.run(call, {});
              }) == 0);
      }
    }
    const auto wrong_with = [queries](const auto& run, TensorCoreBug bug) {
      return wrong_gradients(key_stationary_tensor_core_kernel(), "f16", queries,
                             [&](EmulatedBackward& call) { return run(bug, call, {}); });
    };
    for (const auto run :
         {testing::two_pass_tensor_core_with, testing::key_stationary_tensor_core_with}) {
      CHECK(wrong_with(run, TensorCoreBug::none) == 0);
      CHECK(wrong_with(run, TensorCoreBug::swaps_fragment) > 0);
      CHECK(wrong_with(run, TensorCoreBug::waits_for_too_few) > 0);
      CHECK(wrong_with(run, TensorCoreBug::casts_twice) > 0);
      if (queries == 20) CHECK(wrong_with(run, TensorCoreBug::sees_past_the_end) > 0);
    }
    CHECK(wrong_with(testing::key_stationary_tensor_core_with, TensorCoreBug::forgets_transpose) >
          0);
  }
}

}  // namespace
}  // namespace attest::gpu
