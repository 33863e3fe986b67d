#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gpu/simt/access_order.hpp"
#include "gpu/simt/diagnosis.hpp"
#include "gpu/simt/global_memory.hpp"

namespace attest::simt {

/// Accesses of one launch to the same element of a tensor that nothing orders, one of which writes
/// and not both are additions.
///
/// Blocks are never in order: the traffic policy's addition gives no value back by which one could
/// wait for another. Lanes of one block are in the order of its barriers (AccessOrder), launches in
/// that of their calls: each has races of its own. Tensor copies are not looked at.
/// [gpu/simt/hooks_test "every race in global memory is found in every order, at its line"]
///
/// Cost: 264 bytes for each element of a tensor that the launch may write; tensors that it can only
///       read need none. Blocks may run on several threads.
class GlobalRaces {
 public:
  explicit GlobalRaces(const GlobalMemory& memory);

  /// Who accesses: a lane of a block of the launch's grid, in the order of the block's barriers.
  struct Accessor {
    Index3 block;
    std::uint32_t lane = 0;
    const AccessOrder* order = nullptr;
  };

  /// Remembers an access within a tensor; what of those before it nothing orders with this one, as
  /// ", which lane 3 of block 1,0,0 wrote; nothing orders the two".
  std::optional<std::string> note(const void* pointer, std::size_t bytes, GlobalUse use,
                                  const Accessor& accessor);
  /// The same as a finding that says what the lane does with which bytes of the tensor.
  std::optional<Finding> check(const GlobalRange& range, const void* pointer, std::size_t bytes,
                               GlobalUse use, const Accessor& accessor);

 private:
  struct Known {
    Index3 block;
    std::uint32_t lane = 0;
  };

  // The accesses of one kind to an element: those of the latest block, and one of another.
  class Uses {
   public:
    void clear() { latest_.reset(), other_.reset(); }
    void add(const Accessor& accessor);
    std::optional<Known> unordered(const Accessor& accessor) const;

   private:
    std::optional<Known> latest_, other_;
    Accesses in_latest_;
  };
  struct Element {
    Uses reads, writes, additions;
  };
  // Bytes that tensors have which the launch may write, and that touch one another: rows of several
  // may take turns.
  struct Region {
    const std::byte *begin, *end;
    std::size_t element_bytes;
    std::vector<Element> elements{};
  };

  static std::optional<std::string> conflict(const Element& element, GlobalUse use,
                                             const Accessor& accessor);
  static void add(Element& element, GlobalUse use, const Accessor& accessor);

  static constexpr std::size_t kLocks = 64;
  std::vector<Region> regions_;
  std::array<std::mutex, kLocks> locks_;  // of elements by their number
};

}  // namespace attest::simt
