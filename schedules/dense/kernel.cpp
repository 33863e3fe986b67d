#include "schedules/dense/kernel.hpp"

#include <deque>
#include <string_view>

#include "schedules/engine/schedule_kernel.hpp"
#include "schedules/register.hpp"

namespace attest::schedules {
namespace {

// The tile search would pick a passing tile of one row, since passing rows cost few words or none.
// Vectors need more rows, so their number is fixed here.
const std::vector<ScheduleEntry>& entries() {
  static const std::vector<ScheduleEntry> all{
      {"standard:bl=16", "S and P in slow memory", ATTEST_LSE},
      {"flash1:bq=8", "key blocks stay, O passes through slow memory", ATTEST_LSE, kSixteenBit,
       kMostKeyBlocks, 0, kLeastKeys},
      {"flash2:bk=16", "query blocks stay, key blocks pass by"},
      {"flash2_row", "query blocks stay, keys pass by word by word"},
      {"split_kv:splits=4,bk=16", "flash2 on four parts of the keys, merged through LSE", 0, 0, 4},
      {"square_tiled", "square tiles, S in slow memory"},
      {"rank1_tiled", "rank-1 tiles for both products, S in slow memory"},
      {"hybrid", "query blocks stay for S, rank-1 tiles for P V"},
      {"column_groups", "V in groups of columns, scores computed for each"},
      {"held_scores", "query blocks stay with their scores, or pieces of them"},
      {"rolling_queries", "queries roll through fast memory with their sums, keys visit"},
      {"standard_bwd:bl=16", "P and dS in slow memory, delta from P", ATTEST_SOFTCAP, 0, 0, 1},
      {"flash1_bwd:bq=4", "key blocks stay, dQ passes through slow memory", 0, kSixteenBit},
      {"key_stationary:bq=8", "one pass with key blocks, dQ through slow memory", 0, kSixteenBit},
      {"two_pass:bk=8,cq=8", "a pass for dQ, a pass for dK and dV"},
      {"two_pass_row", "two passes, rows pass by one after another"},
      {"rolling_keys", "keys roll through fast memory, dQ through slow memory", 0, kSixteenBit},
      {"rolling_queries_bwd", "queries roll through fast memory, dK and dV through slow memory", 0,
       kSixteenBit},
      {"key_stationary_ds", "one pass with key blocks, dS stored for dQ"},
      {"query_stationary_p", "P and dS stored, rank-1 tiles for three products", ATTEST_SOFTCAP},
      {"rolling_p", "P and dS stored, queries and then keys roll through fast memory",
       ATTEST_SOFTCAP},
      {"held_pairs", "key blocks stay with their pairs, dQ through slow memory", ATTEST_SOFTCAP,
       kSixteenBit},
      {"rank1_tiled_bwd", "rank-1 tiles for all five products", ATTEST_SOFTCAP},
      {"square_tiled_bwd", "square tiles for all five products", ATTEST_SOFTCAP},
      {"loss_large", "gradient of the attention loss in X, large fast memory"},
      {"loss_large_direct", "gradient of the attention loss in X, W never formed"},
      {"loss_rows", "gradient of the attention loss in X, square products by square tiles"},
      {"loss_small", "gradient of the attention loss in X, square tiles"}};
  return all;
}

}  // namespace

const std::vector<const attest_kernel*>& dense_schedule_kernels() {
  static const std::vector<const attest_kernel*> all = [] {
    static std::deque<ScheduleKernel> kernels;  // they do not move
    const attest_kernel* flash2 = nullptr;
    std::vector<const attest_kernel*> list;
    for (const ScheduleEntry& entry : entries()) {
      kernels.emplace_back("cpu/schedule/", entry, dense_schedules(), flash2);
      list.push_back(&kernels.back().abi());
      if (list.back()->description.name == std::string_view("cpu/schedule/flash2")) {
        flash2 = list.back();
      }
    }
    return list;
  }();
  return all;
}

}  // namespace attest::schedules
