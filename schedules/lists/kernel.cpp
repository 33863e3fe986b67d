#include "schedules/lists/kernel.hpp"

#include <deque>
#include <string_view>

#include "core/error.hpp"
#include "schedules/dense/kernel.hpp"
#include "schedules/engine/schedule_kernel.hpp"
#include "schedules/register.hpp"

namespace attest::schedules {
namespace {

// Extents are given where those of cpu/schedule/ are, for the vectors.
const std::vector<ScheduleEntry>& entries() {
  static const std::vector<ScheduleEntry> all{
      {"block_flash1:bq=8", "listed key blocks stay, O passes through slow memory", ATTEST_LSE,
       kSixteenBit, kMostKeyBlocks, 0, kLeastKeys},
      {"block_flash2:bk=16", "query blocks stay, listed key blocks pass by"},
      {"block_square_tiled", "square tiles of a list, S of them in slow memory"},
      {"block_rank1_tiled", "rank-1 tiles of a list, S of them in slow memory"},
      {"block_held_scores:held=3", "query blocks stay with the scores of listed keys, in pieces"},
      {"csr_gather", "query blocks stay, the keys that one of them sees pass by"},
      {"block_key_stationary:bq=8", "one pass with listed key blocks, dQ through slow memory", 0,
       kSixteenBit},
      {"block_two_pass:bk=8,cq=8", "a pass over a list for dQ, over its transpose for dK and dV"},
      {"csr_two_pass", "a pass over the pairs for dQ, a pass for dK and dV"},
      {"block_square_tiled_bwd", "square tiles of a list for all five products", ATTEST_SOFTCAP},
      {"block_rank1_tiled_bwd", "rank-1 tiles of a list for all five products", ATTEST_SOFTCAP},
      {"block_query_stationary_p", "P and dS of listed tiles stored for three products",
       ATTEST_SOFTCAP},
      {"block_held_pairs", "the pairs of a tile stay, columns of all matrices pass by",
       ATTEST_SOFTCAP, kSixteenBit},
      {"block_held_keys:held=3", "key blocks stay with the pairs of listed tiles, in pieces",
       ATTEST_SOFTCAP, kSixteenBit}};
  return all;
}

const attest_kernel* flash2() {
  for (const attest_kernel* kernel : dense_schedule_kernels()) {
    if (kernel->description.name == std::string_view("cpu/schedule/flash2")) return kernel;
  }
  throw InternalError("no kernel cpu/schedule/flash2");
}

}  // namespace

const std::vector<const attest_kernel*>& list_schedule_kernels() {
  static const std::vector<const attest_kernel*> all = [] {
    static std::deque<ScheduleKernel> kernels;  // they do not move
    std::vector<const attest_kernel*> list;
    for (const ScheduleEntry& entry : entries()) {
      kernels.emplace_back("sparse/schedule/", entry, all_schedules(), flash2());
      list.push_back(&kernels.back().abi());
    }
    return list;
  }();
  return all;
}

}  // namespace attest::schedules
