#include <algorithm>
#include <deque>
#include <numeric>

#include "core/error.hpp"
#include "gpu/kernels/emulated/families.hpp"
#include "gpu/kernels/emulated/moved_words.hpp"
#include "gpu/simt/watch.hpp"
#include "gpu/watch.hpp"

namespace attest {
namespace {

using gpu::AttentionShape;
using gpu::Family;
using gpu::Variant;

constexpr std::int64_t kWordBytes = 4;

const Family& family_named(const std::string& name) {
  std::string known;
  for (const Family& family : gpu::families()) {
    if (family.name == name) return family;
    known += (known.empty() ? "" : ", ") + family.name;
  }
  throw InvalidProblem("family: '" + name + "' is not known; the families are " + known);
}

// Zeros, for the time of a call.
class Operands {
 public:
  const attest_tensor* add(const char* name, std::vector<Axis> axes) {
    const Tensor& tensor = tensors_.emplace_back(name, DType::f32, std::move(axes));
    return forms_.emplace_back(tensor.view()).get();
  }
  template <class Args>
  void set_workspace(Args& args, std::int64_t words) {
    workspace_.resize(static_cast<std::size_t>(words));
    args.workspace = workspace_.data();
    args.workspace_bytes = workspace_.size() * sizeof(float);
  }

 private:
  std::deque<Tensor> tensors_;
  std::deque<AbiTensor> forms_;
  std::vector<float> workspace_;
};

template <class Args>
Args arguments_for(const attest_problem& problem) {
  Args args{};
  args.struct_size = sizeof args;
  args.problem = &problem;
  return args;
}

void set_tensors(attest_forward_args& a, const Problem& p, Operands& operands) {
  a.Q = operands.add("Q", p.q_axes());
  a.K = operands.add("K", p.k_axes());
  a.V = operands.add("V", p.v_axes());
  a.O = operands.add("O", p.o_axes());
  a.LSE = operands.add("LSE", p.lse_axes());
}

void set_tensors(attest_backward_args& a, const Problem& p, Operands& operands) {
  a.Q = operands.add("Q", p.q_axes());
  a.K = operands.add("K", p.k_axes());
  a.V = operands.add("V", p.v_axes());
  a.O = operands.add("O", p.o_axes());
  a.LSE = operands.add("LSE", p.lse_axes());
  a.dO = operands.add("dO", p.o_axes());
  a.dQ = operands.add("dQ", p.q_axes());
  a.dK = operands.add("dK", p.k_axes());
  a.dV = operands.add("dV", p.v_axes());
}

void set_tensors(attest_loss_args& a, const Problem& p, Operands& operands) {
  const std::int64_t n = p.seqlen_q, d = p.head_dim_qk;
  const auto matrix = [&](const char* name, std::int64_t rows) {
    return operands.add(name, {{"rows", rows, 0}, {"columns", d, 0}});
  };
  a.A1 = matrix("A1", n);
  a.A2 = matrix("A2", n);
  a.A3 = matrix("A3", n);
  a.E = matrix("E", n);
  a.X = matrix("X", d);
  a.Y = matrix("Y", d);
  a.dX = matrix("dX", d);
}

// The launches of the direction with the words that they move.
template <class Args, class Call>
std::vector<CappedLaunch> count(const gpu::EmulatedDirection<Call>& direction,
                                const Problem& problem, const attest_problem& form) {
  Operands operands;
  Args args = arguments_for<Args>(form);
  set_tensors(args, problem, operands);
  operands.set_workspace(args, direction.workspace_words(form));
  Call call(args);
  const simt::Watch watch({});
  const simt::LaunchReport report = direction.run(call, {});
  if (!report.clean()) throw InternalError(report.to_string());
  std::vector<CappedLaunch> launches;
  const gpu::LaunchPlan plan = direction.plan(gpu::shape_of(form));
  for (const gpu::PlannedLaunch& planned : plan.launches()) {
    if (planned.line.blocks == 0) continue;  // not made
    const gpu::MovedWords moved = gpu::total(
        gpu::moved_by_tensor(call.memory, watch.traffic().at(launches.size()), DType::f32));
    const gpu::FastMemory memory = planned.fast_memory();
    launches.push_back({planned.kernel, planned.line.blocks, memory.shared_bytes,
                        kWordBytes * memory.threads * memory.thread.registers,
                        memory.thread.local_bytes, moved.reads, moved.writes});
  }
  return launches;
}

// use(direction) of the one that the family is about.
template <class Use>
auto with_direction(const Family& family, const Variant& variant, const Use& use) {
  const gpu::EmulatedDirections& all = variant.kernel->directions();
  if (family.direction == ATTEST_FORWARD) return use(all.forward);
  if (family.direction == ATTEST_BACKWARD) return use(all.backward);
  return use(all.loss_gradient);
}

// The largest that fits.
const Variant& variant_within(const Family& family, std::int64_t cap_bytes,
                              const AttentionShape& shape) {
  const Variant* least = nullptr;
  std::int64_t least_bytes = 0;
  for (const Variant& variant : family.variants) {
    const std::int64_t bytes =
        with_direction(family, variant, [&](const auto& direction) -> std::int64_t {
          if (!direction.fits(shape, {})) return 0;
          return direction.plan(shape).fast_memory().words() * kWordBytes;
        });
    if (bytes == 0) continue;
    if (bytes <= cap_bytes) return variant;
    if (least == nullptr || bytes < least_bytes) {
      least = &variant;
      least_bytes = bytes;
    }
  }
  if (least == nullptr) {
    throw InvalidProblem(family.name +
                         ": no variant takes this problem on a device; choose other head "
                         "dimensions or another family");
  }
  throw InvalidProblem("cap_bytes: " + std::to_string(cap_bytes) + ", but " +
                       least->schedule(shape) + " needs " + std::to_string(least_bytes) +
                       ", the least of " + family.name + "; give more");
}

template <class Of>
std::int64_t sum(const std::vector<CappedLaunch>& launches, const Of& of) {
  return std::accumulate(
      launches.begin(), launches.end(), std::int64_t{0},
      [&](std::int64_t before, const CappedLaunch& launch) { return before + launch.*of; });
}

}  // namespace

std::int64_t most_block_bytes() {
  constexpr std::int64_t kRegisters = 65536;
  return simt::Emulation{}.shared_bytes_limit + kRegisters * kWordBytes;
}

CappedLaunch CappedCount::largest() const {
  CappedLaunch most;
  for (const CappedLaunch& launch : launches) {
    if (launch.fast_bytes() > most.fast_bytes()) most = launch;
  }
  return most;
}
std::int64_t CappedCount::local_bytes() const {
  std::int64_t most = 0;
  for (const CappedLaunch& launch : launches) most = std::max(most, launch.local_bytes);
  return most;
}
std::int64_t CappedCount::blocks() const { return sum(launches, &CappedLaunch::blocks); }
std::int64_t CappedCount::read_words() const { return sum(launches, &CappedLaunch::read_words); }
std::int64_t CappedCount::written_words() const {
  return sum(launches, &CappedLaunch::written_words);
}

void register_capped(Registry& registry) {
  const std::vector<const gpu::EmulatedKernel*>& registered = gpu::emulated_kernels();
  for (const Family& family : gpu::families()) {
    for (const Variant& variant : family.variants) {
      const bool known = std::count(registered.begin(), registered.end(), variant.kernel) != 0;
      // two_pass is the backward of flash2's kernels.
      if (!known && family.name != "two_pass") registry.add(&variant.kernel->abi());
    }
  }
}

const std::vector<std::string>& capped_families() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Family& family : gpu::families()) all.push_back(family.name);
    return all;
  }();
  return names;
}

CappedCount count_capped(const std::string& family_name, std::int64_t cap_bytes,
                         const Problem& problem) {
  const Family& family = family_named(family_name);
  if (problem.dtype != DType::f32) throw InvalidProblem("dtype: only f32 is counted under a cap");
  const AbiProblem form(problem, 1);
  const AttentionShape shape = gpu::shape_of(*form.get());
  const Variant& variant = variant_within(family, cap_bytes, shape);
  const gpu::EmulatedDirections& all = variant.kernel->directions();
  CappedCount found{variant.schedule(shape), {}};
  if (family.direction == ATTEST_FORWARD) {
    found.launches = count<attest_forward_args>(all.forward, problem, *form.get());
  } else if (family.direction == ATTEST_BACKWARD) {
    found.launches = count<attest_backward_args>(all.backward, problem, *form.get());
  } else {
    found.launches = count<attest_loss_args>(all.loss_gradient, problem, *form.get());
  }
  return found;
}

}  // namespace attest
