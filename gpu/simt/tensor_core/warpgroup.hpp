#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "gpu/simt/diagnosis.hpp"
#include "gpu/simt/tensor_core/group_product.hpp"

/// Host functions behind the words of warpgroup.cuh. Each throws InternalError outside of a lane.
namespace attest::simt {

class Block;

/// A product with the registers of one lane, which are its own.
struct GroupProductCall {
  float* d = nullptr;                // columns / 2
  const std::uint32_t* a = nullptr;  // fragments; null: A is in shared memory
  GroupProduct product;
};

/// The products of one warpgroup that have not ended. They read shared memory and write registers
/// when they are waited for: the latest that a device may. Until then the accumulators are NaN.
class GroupProducts {
 public:
  using Calls = std::array<GroupProductCall, kWarpgroupLanes>;

  void fence();
  void begin(Block& block, std::uint32_t group, const Calls& calls, SourceLine where);
  void commit() { ++group_; }
  /// Ends all groups but the latest.
  void wait(Block& block, std::uint32_t group, std::uint64_t most_pending);
  /// Returns the fault of a lane's access to its own memory: to registers of a product under way.
  std::optional<Finding> touch(std::uint32_t lane, const void* pointer, std::size_t bytes);
  /// All lanes have returned: what is still under way is a diagnosis.
  void end(Block& block) const;

 private:
  struct Accumulators {
    std::array<float*, kWarpgroupLanes> d{};
    std::uint32_t columns = 0;
    std::vector<float> values;  // row by row
    int products = 0;           // under way
  };
  struct Product {
    Calls calls;
    std::vector<std::uint32_t> a;  // fragments, lane by lane
    std::list<Accumulators>::iterator d;
    std::uint64_t group = 0;
    SourceLine where;
  };

  std::list<Accumulators>::iterator take_accumulators(const Calls& calls);
  void require_fence(Block& block, const Calls& calls, SourceLine where) const;

  bool fenced_ = false;
  std::uint64_t group_ = 0;  // that products join until the next commit
  std::vector<Product> pending_;
  std::list<Accumulators> accumulators_;
  // By lane, words of its own memory that it has used since the last fence.
  std::array<std::unordered_set<std::uintptr_t>, kWarpgroupLanes> touched_;
};

/// The warpgroups of one block: four warps each, whose lanes come to an instruction together.
class Warpgroups {
 public:
  using Given = std::array<const void*, kWarpgroupLanes>;
  using Finish = void (*)(Block& block, std::uint32_t group, const Given& given, SourceLine where);

  void begin(std::uint32_t lanes);

  /// Waits until all lanes of the running lane's warpgroup are here; the last one finishes.
  void come(Block& block, std::string_view operation, SourceLine where, const void* given,
            Finish finish);
  /// Lanes that have returned are not waited for, but the instruction is not carried out.
  void leave(Block& block, std::uint32_t lane);
  GroupProducts& products(std::uint32_t group) { return groups_[group].products; }
  /// Tells whether a warpgroup has come to an instruction, so registers may be those of products.
  [[gnu::always_inline]] bool used() const { return used_; }  // as Block::current
  /// Returns the fault of a lane's access to its own stack.
  std::optional<Finding> touch(std::uint32_t lane, const void* pointer, std::size_t bytes);

  /// Instructions to which a part of a warpgroup has come although no lane can go on.
  void explain_deadlock(Block& block) const;
  void end(Block& block) const;

 private:
  struct Group {
    std::uint32_t live = 0, arrived = 0;
    std::string_view operation;
    SourceLine where;
    Given given{};
    std::vector<std::uint32_t> waiting;
    Finish finish = nullptr;
    GroupProducts products;
  };

  void meet(Block& block, std::uint32_t number);

  std::vector<Group> groups_;
  bool used_ = false;
};

/// The descriptor of a matrix in shared memory that begins there.
std::uint64_t describe_matrix(const void* shared, std::uint32_t leading_bytes,
                              std::uint32_t stride_bytes, Swizzle swizzle, SourceLine where);

void group_fence(SourceLine where);
void group_product(const GroupProductCall& call, SourceLine where);
void group_commit(SourceLine where);
void group_wait(std::uint64_t most_pending, SourceLine where);

}  // namespace attest::simt
