#include "schedules/engine/schedule_kernel.hpp"

#include <algorithm>
#include <exception>
#include <memory>

#include "core/error.hpp"
#include "cpu/kernels/kernel.hpp"
#include "cpu/kernels/machine/fast_memory.hpp"
#include "cpu/kernels/tiles/geometry.hpp"

namespace attest::schedules {

using namespace cpu;  // its arithmetic
namespace {

// The most keys of a batch entry: key blocks beyond are not visited.
std::int64_t longest_keys(const attest_problem& problem) {
  std::int64_t longest = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    longest = std::max(longest, batch_of(problem, b).keys);
  }
  return longest;
}

// The smaller of two limits of head dimensions, 0 for none.
std::int64_t smaller_limit(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

bool beyond(std::int64_t limit, const attest_problem& problem) {
  return limit != 0 && std::max(problem.head_dim_qk, problem.head_dim_v) > limit;
}

// Returns the sizes that the search for tiles looks at on a problem without a boolean mask.
std::vector<std::int64_t> sizes_of(const attest_problem& problem) {
  std::vector<std::int64_t> sizes{problem.batch,      problem.num_heads_q, problem.num_heads_kv,
                                  problem.seqlen_q,   problem.seqlen_k,    problem.head_dim_qk,
                                  problem.head_dim_v, problem.dtype};
  const attest_mask& mask = problem.mask;
  for (const std::int64_t width : {mask.window_left, mask.window_right}) sizes.push_back(width);
  sizes.push_back(mask.align);
  if (mask.key_lengths != nullptr) {
    sizes.insert(sizes.end(), mask.key_lengths, mask.key_lengths + problem.batch);
  }
  for (const std::int32_t* ends : {mask.cu_seqlens_q, mask.cu_seqlens_k}) {
    if (ends != nullptr) sizes.insert(sizes.end(), ends, ends + problem.batch + 1);
  }
  return sizes;
}

// The largest number of `low` (which fits) to `high` that fits, where all below it do.
template <class Fits>
std::int64_t largest_fitting(std::int64_t low, std::int64_t high, const Fits& fits) {
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace

ScheduleKernel::ScheduleKernel(const std::string& prefix, const ScheduleEntry& entry,
                               const io::ScheduleRegistry& schedules, const attest_kernel* flash2)
    : capacity_(io::FastMemory::of_bytes(first_level_cache_bytes())),
      most_key_blocks_(entry.lse_splits),
      least_keys_(entry.lse_split_keys),
      forward_(nullptr) {
  named_.spec = io::ScheduleSpec::parse(entry.schedule);
  named_.family = &schedules.find(named_.spec.name);
  without_lists_.spec = io::spec_without_lists(schedules, named_.spec);
  without_lists_.family = &schedules.find(without_lists_.spec.name);
  name_ = prefix + named_.spec.name;
  if (named_.family->direction() == attest::Direction::backward) forward_ = flash2;
  kernel_.struct_size = sizeof kernel_;
  kernel_.abi_version = ATTEST_ABI_VERSION;
  kernel_.self = this;
  kernel_.description = describe(entry);
  constexpr std::int64_t kWidestInUse = 576;
  limits_.struct_size = sizeof limits_;
  limits_.seqlen_k.most =
      most_keys(without_lists_, smaller_limit(kernel_.description.max_head_dim, kWidestInUse));
  if (limits_.seqlen_k.most > 0) kernel_.description.limits = &limits_;
  kernel_.workspace_bytes = [](const void*, const attest_problem*, std::uint32_t) {
    return std::size_t{0};
  };
  kernel_.forward = [](const void* self, const attest_forward_args* args) {
    const auto& kernel = *static_cast<const ScheduleKernel*>(self);
    const attest_kernel* other = kernel.forward_;
    return other != nullptr ? other->forward(other->self, args) : kernel.run(*args);
  };
  kernel_.backward = [](const void* self, const attest_backward_args* args) {
    return static_cast<const ScheduleKernel*>(self)->run(*args);
  };
  kernel_.loss_gradient = [](const void* self, const attest_loss_args* args) {
    return static_cast<const ScheduleKernel*>(self)->run(*args);
  };
}

attest_description ScheduleKernel::describe(const ScheduleEntry& entry) const {
  attest_description description = common_description(name_.c_str(), entry.summary, entry.schedule);
  description.fast_memory_bytes = capacity_.bytes;
  description.numerics.lse_splits = entry.lse_splits;
  description.numerics.lse_split_keys = entry.lse_split_keys;
  description.numerics.delta_from_p = entry.delta_from_p;
  switch (named_.family->direction()) {
    case attest::Direction::forward:
      description.directions = ATTEST_FORWARD;
      description.features &= ~static_cast<std::uint32_t>(ATTEST_DLSE);
      break;
    case attest::Direction::backward:  // and the forward of flash2
      break;
    case attest::Direction::loss_gradient:
      description.directions = ATTEST_LOSS_GRADIENT;
      description.features = ATTEST_ANY_STRIDES | ATTEST_LAYOUT_BITS;
      description.dtypes = 1u << ATTEST_F32;
      break;
  }
  description.features &= ~entry.no_features;
  description.dtypes &= ~entry.no_dtypes;
  attest_mask none{};
  none.window_left = none.window_right = -1;
  description.max_head_dim = largest_head_dim(without_lists_, none);
  if (named_.family != without_lists_.family) {  // lists of a band are lists as any
    attest_mask causal = none;
    causal.window_right = 0;
    description.max_head_dim =
        smaller_limit(description.max_head_dim, largest_head_dim(named_, causal));
  }
  if (forward_ != nullptr) {  // a backward call needs the forward call before it
    description.max_head_dim =
        smaller_limit(description.max_head_dim, forward_->description.max_head_dim);
  }
  return description;
}

const ScheduleKernel::Choice& ScheduleKernel::choice_for(const attest_problem& problem) const {
  return problem.mask.boolean != nullptr ? named_ : without_lists_;
}

// With every tile that is left open of one row: no search is needed to see whether that fits.
// flash1's key blocks must be as long as the numerics say, so they are searched.
io::ScheduleSpec ScheduleKernel::smallest_tiles(const Choice& choice) const {
  io::ScheduleSpec smallest = choice.spec;
  if (least_keys_ > 0) return smallest;
  for (const io::ScheduleParameter& parameter : choice.family->parameters()) {
    const auto& given = choice.spec.parameters;
    const bool open = std::none_of(given.begin(), given.end(),
                                   [&](const auto& one) { return one.first == parameter.name; });
    if (open && parameter.choices.empty()) smallest.parameters.emplace_back(parameter.name, "1");
  }
  return smallest;
}

// The largest head dimension for which the smallest tiles fit; 0: any.
std::int64_t ScheduleKernel::largest_head_dim(const Choice& choice, const attest_mask& mask) const {
  attest_problem problem{};
  problem.struct_size = sizeof problem;
  problem.batch = problem.num_heads_q = problem.num_heads_kv = 1;
  problem.seqlen_q = problem.seqlen_k = 64;  // no fixed tile is longer
  problem.dtype = ATTEST_F32;
  problem.mask = mask;
  const io::ScheduleSpec smallest = smallest_tiles(choice);
  const auto fits = [&](std::int64_t head_dim) {
    problem.head_dim_qk = problem.head_dim_v = head_dim;
    try {
      const auto schedule = choice.family->make(smallest, problem, capacity_);
      return merges_as_declared(schedule->spec(), problem);
    } catch (const io::CapacityExceeded&) {
      return false;
    }
  };
  // Every schedule holds at least a word of a row; beyond that many no row fits.
  const std::int64_t most = largest_fitting(0, capacity_.bytes, fits);
  return most == capacity_.bytes ? 0 : most;
}

// The most keys for which the smallest tiles fit, as of a schedule that holds a row of scores; 0:
// any.
std::int64_t ScheduleKernel::most_keys(const Choice& choice, std::int64_t head_dim) const {
  constexpr std::int64_t kAny = std::int64_t{1} << 20;
  attest_problem problem{};
  problem.struct_size = sizeof problem;
  problem.batch = problem.num_heads_q = problem.num_heads_kv = problem.seqlen_q = 1;
  problem.head_dim_qk = problem.head_dim_v = head_dim;
  problem.dtype = ATTEST_F32;
  problem.mask.window_left = problem.mask.window_right = -1;
  const io::ScheduleSpec smallest = smallest_tiles(choice);
  const auto fits = [&](std::int64_t keys) {
    problem.seqlen_k = keys;
    try {
      choice.family->make(smallest, problem, capacity_);
      return true;
    } catch (const InvalidProblem&) {
      return false;
    }
  };
  if (named_.family->direction() == attest::Direction::loss_gradient || fits(kAny)) return 0;
  return largest_fitting(1, kAny, fits);
}

template <class Arguments>
attest_status ScheduleKernel::run(const Arguments& args) const {
  const attest_problem& problem = *args.problem;
  if (beyond(kernel_.description.max_head_dim, problem)) return ATTEST_UNSUPPORTED;
  try {
    io::ScheduleSpec spec = tiles_for(problem);
    if constexpr (requires { args.dLSE; }) {
      if (args.dLSE != nullptr) spec.parameters.emplace_back("dlse", "given");
    }
    const auto schedule = choice_for(problem).family->make(spec, problem, capacity_);
    if (!merges_as_declared(schedule->spec(), problem)) return ATTEST_UNSUPPORTED;
    schedule->run(args);
    return ATTEST_OK;
  } catch (const InvalidProblem&) {
    return ATTEST_UNSUPPORTED;
  } catch (const std::exception&) {  // lists or workspaces that do not fit into memory
    return ATTEST_FAILED;
  }
}

// Tells whether the key blocks of flash1, whose results are merged one after another, are as few
// and as long as the numerics say.
bool ScheduleKernel::merges_as_declared(const io::ScheduleSpec& spec,
                                        const attest_problem& problem) const {
  if (least_keys_ == 0) return true;
  for (const auto& [key, value] : spec.parameters) {
    if (key != "bk") continue;
    const std::int64_t block_k = std::stoll(value);
    const std::int64_t blocks = io::tiles(longest_keys(problem), block_k);
    return blocks <= 1 || (blocks <= most_key_blocks_ && block_k >= least_keys_);
  }
  throw InternalError(name_ + " without key blocks");
}

// For a few keys the search may find key blocks shorter than the kernel declares: then with as many
// keys as declared, or all of them in one block.
io::ScheduleSpec ScheduleKernel::merging_as_declared(io::ScheduleSpec spec,
                                                     const attest_problem& problem) const {
  if (merges_as_declared(spec, problem)) return spec;
  const std::int64_t least = std::min<std::int64_t>(least_keys_, longest_keys(problem));
  for (auto& [key, value] : spec.parameters) {
    if (key == "bk") value = std::to_string(std::max<std::int64_t>(std::stoll(value), least));
  }
  return spec;
}

io::ScheduleSpec ScheduleKernel::chosen_for(const attest_problem& problem) const {
  const Choice& choice = choice_for(problem);
  return merging_as_declared(choice.family->make(choice.spec, problem, capacity_)->spec(), problem);
}

// The search for tiles costs more than a small problem: the last ones are kept. With a mask of
// pairs the tiles may be of the mask.
io::ScheduleSpec ScheduleKernel::tiles_for(const attest_problem& problem) const {
  if (problem.mask.boolean != nullptr) return chosen_for(problem);
  const std::vector<std::int64_t> key = sizes_of(problem);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = chosen_.find(key);
  if (known != chosen_.end()) return known->second;
  constexpr std::size_t kMostKept = 256;
  if (chosen_.size() == kMostKept) chosen_.clear();
  return chosen_[key] = chosen_for(problem);
}

}  // namespace attest::schedules
