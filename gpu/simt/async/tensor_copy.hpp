#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/simt/async/mbarrier.hpp"
#include "gpu/simt/async/tensor_shape.hpp"
#include "gpu/simt/diagnosis.hpp"
#include "gpu/simt/memory/global_memory.hpp"

/// Host functions behind the words of tensor_copy.cuh. Each throws InternalError outside of a lane.
namespace attest::simt {

/// A tensor that the copies of one launch may move boxes of. A device has its own form for it.
struct TensorMap {
  std::byte* data = nullptr;
  int tensor = -1;  // of the launch's global memory; -1: not counted
  TensorShape shape;
};

using BoxPlace = std::array<int, TensorShape::kMostDimensions>;

/// An address of shared memory after its 16-byte piece has changed places.
std::uint32_t swizzled(std::uint32_t address, Swizzle swizzle);

/// The tensor copies of one block that have not ended. Loads arrive when no lane can go on without
/// them, stores when they are waited for: the latest that a device may be.
class TensorCopies {
 public:
  void begin(std::uint32_t lanes);

  void load(AsyncBlock& block, void* shared, const TensorMap& map, bool counted,
            const BoxPlace& place, const void* barrier, SourceLine where);
  void store(AsyncBlock& block, const TensorMap& map, bool counted, const BoxPlace& place,
             const void* shared, SourceLine where);
  void commit(std::uint32_t lane) { ++groups_[lane]; }
  /// Ends the stores of all of the lane's groups but the latest.
  void wait(AsyncBlock& block, std::uint32_t lane, std::uint64_t most_pending);

  /// Loads arrive whose barriers lanes wait for; whether there were any.
  bool arrive(AsyncBlock& block);
  /// All lanes have returned: what is still under way is a diagnosis.
  void end(AsyncBlock& block);

 private:
  struct Copy {
    TensorMap map;
    bool counted = false;
    BoxPlace place{};
    std::uint32_t address = 0;  // in shared memory
    std::uint32_t lane = 0;
    SourceLine where;
  };
  struct Load {
    Copy copy;
    std::vector<std::byte> box;  // read at once, zeros where there is no element
    Mbarriers::Completion completion;
  };
  struct Store {
    Copy copy;
    std::uint64_t group = 0;
  };

  static void land(AsyncBlock& block, const Load& load);
  static void carry_out(AsyncBlock& block, const Store& store);

  std::vector<Load> loads_;
  std::vector<Store> stores_;
  std::vector<std::uint64_t> groups_;  // by lane, that stores join until the next commit
};

void begin_tensor_load(void* shared, const TensorMap& map, bool counted, const BoxPlace& place,
                       const void* barrier, SourceLine where);
void begin_tensor_store(const TensorMap& map, bool counted, const BoxPlace& place,
                        const void* shared, SourceLine where);
void commit_tensor_stores();
void wait_for_tensor_stores(std::uint64_t most_pending);

}  // namespace attest::simt
