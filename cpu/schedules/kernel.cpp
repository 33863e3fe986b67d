#include "cpu/schedules/kernel.hpp"

#include <algorithm>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/error.hpp"
#include "cpu/kernels/fast_memory.hpp"
#include "cpu/kernels/geometry.hpp"
#include "cpu/kernels/kernel.hpp"
#include "cpu/register.hpp"
#include "io/schedule.hpp"

namespace attest::cpu {
namespace {

constexpr std::uint32_t kSixteenBit = 1u << ATTEST_BF16 | 1u << ATTEST_F16;

/// A schedule and what it does not support of what its direction does.
struct Entry {
  const char* schedule;
  const char* summary;
  std::uint32_t no_features = 0;
  std::uint32_t no_dtypes = 0;
  std::int32_t lse_splits = 0;
  std::int32_t delta_from_p = 0;
  std::int32_t lse_split_keys = 0;
};

// flash1 divides O by its sum after every key block and takes it back at the next: a merge of
// normalized results for each. More key blocks than this, or shorter ones, are refused.
constexpr std::int32_t kMostKeyBlocks = 256, kLeastKeys = 8;

// What passes by costs few words or none, so the search would let it pass one by one: vectors need
// more of it.
const std::vector<Entry>& entries() {
  static const std::vector<Entry> all{
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
      {"held_scores", "query blocks stay with all their scores"},
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
      {"rank1_tiled_bwd", "rank-1 tiles for all five products", ATTEST_SOFTCAP},
      {"square_tiled_bwd", "square tiles for all five products", ATTEST_SOFTCAP},
      {"loss_large", "gradient of the attention loss in X, large fast memory"},
      {"loss_large_direct", "gradient of the attention loss in X, W never formed"},
      {"loss_rows", "gradient of the attention loss in X, square products by square tiles"},
      {"loss_small", "gradient of the attention loss in X, square tiles"}};
  return all;
}

class ScheduleKernel {
 public:
  ScheduleKernel(const Entry& entry, const ScheduleKernel* flash2)
      : spec_(io::ScheduleSpec::parse(entry.schedule)),
        name_("cpu/schedule/" + spec_.name),
        family_(cpu_schedules().find(spec_.name)),
        capacity_(io::FastMemory::of_bytes(first_level_cache_bytes())),
        forward_(family_.direction() == io::Direction::backward ? flash2 : this) {
    kernel_.struct_size = sizeof kernel_;
    kernel_.abi_version = ATTEST_ABI_VERSION;
    kernel_.self = this;
    kernel_.description = describe(entry);
    kernel_.workspace_bytes = [](const void*, const attest_problem*, std::uint32_t) {
      return std::size_t{0};
    };
    kernel_.forward = [](const void* self, const attest_forward_args* args) {
      return static_cast<const ScheduleKernel*>(self)->forward_->run(*args);
    };
    kernel_.backward = [](const void* self, const attest_backward_args* args) {
      return static_cast<const ScheduleKernel*>(self)->run(*args);
    };
    kernel_.loss_gradient = [](const void* self, const attest_loss_args* args) {
      return static_cast<const ScheduleKernel*>(self)->run(*args);
    };
  }
  ScheduleKernel(const ScheduleKernel&) = delete;
  ScheduleKernel& operator=(const ScheduleKernel&) = delete;

  const attest_kernel& abi() const { return kernel_; }
  bool is(const std::string& schedule) const { return spec_.name == schedule; }

 private:
  attest_description describe(const Entry& entry) const {
    attest_description description =
        common_description(name_.c_str(), entry.summary, entry.schedule);
    description.fast_memory_bytes = capacity_.bytes;
    description.numerics.lse_splits = entry.lse_splits;
    description.numerics.lse_split_keys = entry.lse_split_keys;
    description.numerics.delta_from_p = entry.delta_from_p;
    switch (family_.direction()) {
      case io::Direction::forward:
        description.directions = ATTEST_FORWARD;
        description.features &= ~static_cast<std::uint32_t>(ATTEST_DLSE);
        break;
      case io::Direction::backward:  // and the forward of flash2
        break;
      case io::Direction::loss_gradient:
        description.directions = ATTEST_LOSS_GRADIENT;
        description.features = ATTEST_ANY_STRIDES;
        description.dtypes = 1u << ATTEST_F32;
        break;
    }
    description.features &= ~entry.no_features;
    description.dtypes &= ~entry.no_dtypes;
    description.max_head_dim = largest_head_dim(description.numerics);
    if (forward_ != this) {  // a backward call needs the forward call before it
      const std::int64_t own = description.max_head_dim,
                         forward = forward_->kernel_.description.max_head_dim;
      description.max_head_dim = own == 0 ? forward : std::min(own, forward);
    }
    return description;
  }

  // With every tile that is left open of one row: no search is needed to see whether that fits.
  // flash1's key blocks must be as long as the numerics say, so they are searched.
  io::ScheduleSpec smallest_tiles() const {
    io::ScheduleSpec smallest = spec_;
    if (smallest.name == "flash1") return smallest;
    for (const io::ScheduleParameter& parameter : family_.parameters()) {
      const bool given = std::any_of(spec_.parameters.begin(), spec_.parameters.end(),
                                     [&](const auto& one) { return one.first == parameter.name; });
      if (!given && parameter.choices.empty())
        smallest.parameters.emplace_back(parameter.name, "1");
    }
    return smallest;
  }

  // The largest head dimension for which the smallest tiles fit.
  std::int64_t largest_head_dim(const attest_numerics& numerics) const {
    attest_problem problem{};
    problem.struct_size = sizeof problem;
    problem.batch = problem.num_heads_q = problem.num_heads_kv = 1;
    problem.seqlen_q = problem.seqlen_k = 64;  // no fixed tile is longer
    problem.dtype = ATTEST_F32;
    problem.mask.window_left = problem.mask.window_right = -1;
    const io::ScheduleSpec smallest = smallest_tiles();
    const auto fits = [&](std::int64_t head_dim) {
      problem.head_dim_qk = problem.head_dim_v = head_dim;
      try {
        const auto schedule = family_.make(smallest, problem, capacity_);
        return merges_as_declared(schedule->spec(), problem, numerics);
      } catch (const io::CapacityExceeded&) {
        return false;
      }
    };
    // Every schedule holds at least a word of a row; beyond `high` no row fits.
    std::int64_t low = 0, high = capacity_.bytes;
    while (low < high) {
      const std::int64_t middle = low + (high - low + 1) / 2;
      if (fits(middle)) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low == capacity_.bytes ? 0 : low;
  }

  template <class Arguments>
  attest_status run(const Arguments& args) const {
    std::unique_ptr<io::Schedule> schedule;
    try {
      io::ScheduleSpec spec = tiles_for(*args.problem);
      if constexpr (requires { args.dLSE; }) {
        if (args.dLSE != nullptr) spec.parameters.emplace_back("dlse", "given");
      }
      schedule = family_.make(spec, *args.problem, capacity_);
      if (!merges_as_declared(schedule->spec(), *args.problem, kernel_.description.numerics)) {
        return ATTEST_UNSUPPORTED;
      }
    } catch (const InvalidProblem&) {
      return ATTEST_UNSUPPORTED;
    }
    try {
      schedule->run(args);
      return ATTEST_OK;
    } catch (const std::exception&) {
      return ATTEST_FAILED;
    }
  }

  // The most keys of a batch entry: key blocks beyond are not visited.
  static std::int64_t longest_keys(const attest_problem& problem) {
    std::int64_t longest = 0;
    for (std::int64_t b = 0; b < problem.batch; ++b) {
      longest = std::max(longest, batch_of(problem, b).keys);
    }
    return longest;
  }

  // Whether the key blocks of flash1, whose results are merged one after another, are as few and as
  // long as the numerics say.
  static bool merges_as_declared(const io::ScheduleSpec& spec, const attest_problem& problem,
                                 const attest_numerics& numerics) {
    if (spec.name != "flash1") return true;
    for (const auto& [key, value] : spec.parameters) {
      if (key != "bk") continue;
      const std::int64_t block_k = std::stoll(value);
      const std::int64_t blocks = io::tiles(longest_keys(problem), block_k);
      return blocks <= 1 || (blocks <= numerics.lse_splits && block_k >= numerics.lse_split_keys);
    }
    throw InternalError("flash1 without key blocks");
  }

  // The search for tiles costs more than a small problem: the last ones are kept.
  io::ScheduleSpec tiles_for(const attest_problem& problem) const {
    std::vector<std::int64_t> key{problem.batch,      problem.num_heads_q, problem.num_heads_kv,
                                  problem.seqlen_q,   problem.seqlen_k,    problem.head_dim_qk,
                                  problem.head_dim_v, problem.dtype};
    const attest_mask& mask = problem.mask;
    // Of all schedules held_scores alone has tiles of the band.
    for (const std::int64_t width : {mask.window_left, mask.window_right}) key.push_back(width);
    key.push_back(mask.align);
    if (mask.key_lengths != nullptr) {
      key.insert(key.end(), mask.key_lengths, mask.key_lengths + problem.batch);
    }
    for (const std::int32_t* ends : {mask.cu_seqlens_q, mask.cu_seqlens_k}) {
      if (ends != nullptr) key.insert(key.end(), ends, ends + problem.batch + 1);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = chosen_.find(key);
    if (known != chosen_.end()) return known->second;
    constexpr std::size_t kMostKept = 256;
    if (chosen_.size() == kMostKept) chosen_.clear();
    return chosen_[key] =
               merging_as_declared(family_.make(spec_, problem, capacity_)->spec(), problem);
  }

  // For a few keys the search may find key blocks shorter than the kernel declares: then with as
  // many keys as declared, or all of them in one block.
  io::ScheduleSpec merging_as_declared(io::ScheduleSpec spec, const attest_problem& problem) const {
    const attest_numerics& numerics = kernel_.description.numerics;
    if (merges_as_declared(spec, problem, numerics)) return spec;
    const std::int64_t least =
        std::min<std::int64_t>(numerics.lse_split_keys, longest_keys(problem));
    for (auto& [key, value] : spec.parameters) {
      if (key == "bk") value = std::to_string(std::max<std::int64_t>(std::stoll(value), least));
    }
    return spec;
  }

  io::ScheduleSpec spec_;
  std::string name_;
  const io::ScheduleFamily& family_;
  io::FastMemory capacity_;
  const ScheduleKernel* forward_;
  attest_kernel kernel_{};
  mutable std::mutex mutex_;
  mutable std::map<std::vector<std::int64_t>, io::ScheduleSpec> chosen_;
};

}  // namespace

const std::vector<const attest_kernel*>& schedule_kernels() {
  static const std::vector<const attest_kernel*> all = [] {
    static std::deque<ScheduleKernel> kernels;  // they do not move
    const ScheduleKernel* flash2 = nullptr;
    std::vector<const attest_kernel*> list;
    for (const Entry& entry : entries()) {
      kernels.emplace_back(entry, flash2);
      if (kernels.back().is("flash2")) flash2 = &kernels.back();
      list.push_back(&kernels.back().abi());
    }
    return list;
  }();
  return all;
}

}  // namespace attest::cpu
