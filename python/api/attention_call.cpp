#include "python/api/attention_call.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/features/pages.hpp"
#include "proptest/judge/past_lengths.hpp"
#include "python/api/contract.hpp"

namespace attest::python {
namespace {

using Axes = std::vector<Axis>;

// Visits every index of at most four axes.
template <class Visit>
void for_each_index(const TensorView& view, const Visit& visit) {
  const auto extent = [&](std::size_t axis) { return axis < view.rank() ? view.extent(axis) : 1; };
  for (std::int64_t i = 0; i < extent(0); ++i) {
    for (std::int64_t j = 0; j < extent(1); ++j) {
      for (std::int64_t k = 0; k < extent(2); ++k) {
        for (std::int64_t l = 0; l < extent(3); ++l) visit(i, j, k, l);
      }
    }
  }
}

TensorView view_like(const attest_tensor& tensor, std::string_view name, const Axes& axes) {
  if (tensor.device.device_type != ATTEST_CPU) {
    throw InvalidProblem(std::string(name) +
                         ": lies on a device; copy it to the host's memory first");
  }
  std::vector<std::string_view> names;
  for (const Axis& axis : axes) names.push_back(axis.name);
  const TensorView view = view_of(tensor, name, names);
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    if (view.extent(axis) == axes[axis].extent) continue;
    throw InvalidProblem(std::string(name) + ": " + std::string(axes[axis].name) + " is " +
                         std::to_string(view.extent(axis)) + ", the problem says " +
                         std::to_string(axes[axis].extent));
  }
  return view;
}

Tensor packed(const TensorView& view, DType dtype, const Axes& axes) {
  Tensor copy(view.name(), dtype, axes);
  for_each_index(view,
                 [&](auto i, auto j, auto k, auto l) { copy.set(view(i, j, k, l), i, j, k, l); });
  return copy;
}

// Views a tensor that must have the problem's dtype.
TensorView view_of_dtype(const attest_tensor* tensor, const char* name, const Axes& axes,
                         DType dtype) {
  if (tensor == nullptr) throw InvalidProblem(std::string(name) + " is not given");
  const TensorView view = view_like(*tensor, name, axes);
  if (view.dtype() == dtype) return view;
  throw InvalidProblem(std::string(name) + ": its dtype is " +
                       std::string(attest::name(view.dtype())) + ", the problem's " +
                       std::string(attest::name(dtype)) +
                       "; Q, K, V, O and their gradients have one dtype");
}

Tensor input(const attest_tensor* tensor, const char* name, const Axes& axes, DType dtype) {
  return packed(view_of_dtype(tensor, name, axes, dtype), DType::f64, axes);
}

Tensor output(const attest_tensor* tensor, const char* name, const Axes& axes, DType dtype) {
  return packed(view_of_dtype(tensor, name, axes, dtype), dtype, axes);
}

// Views LSE, its gradient or that of sinks, which kernels keep in float32 or wider.
TensorView scalar_view(const attest_tensor& tensor, const char* name, const Axes& axes) {
  const TensorView view = view_like(tensor, name, axes);
  if (view.dtype() == DType::f32 || view.dtype() == DType::f64) return view;
  throw InvalidProblem(std::string(name) + ": its dtype is " +
                       std::string(attest::name(view.dtype())) + "; it must be f32 or f64");
}

std::shared_ptr<const BooleanMask> given_mask(const Problem& problem, const std::uint8_t* visible) {
  if (problem.mask.boolean) {
    throw InvalidProblem("mask: '" + problem.mask.boolean->spelling +
                         "' and a boolean mask together; give one of them");
  }
  require_mask_size("given", problem.seqlen_q, problem.seqlen_k);
  auto mask = std::make_shared<BooleanMask>();
  mask->rows = problem.seqlen_q;
  mask->columns = problem.seqlen_k;
  mask->spelling = "given";
  for (std::int64_t pair = 0; pair < mask->rows * mask->columns; ++pair) {
    mask->visible.push_back(visible[pair] != 0 ? 1 : 0);
  }
  return mask;
}

void give_sinks(Problem& problem, const float* sinks) {
  if (problem.sinks != Sinks::none) {
    throw InvalidProblem("sinks: '" + std::string(name(problem.sinks)) +
                         "' in the problem and given ones together; give one of them");
  }
  problem.sinks = Sinks::given;
  problem.given_sinks.assign(sinks, sinks + problem.num_heads_q);
  problem.validate();
}

void give_head_mask(Problem& problem, const std::uint8_t* visible, const std::int64_t* extents) {
  if (problem.head_mask.kind != HeadMask::Kind::none) {
    throw InvalidProblem("head_mask: '" + problem.head_mask.to_string() +
                         "' in the problem and a given one together; give one of them");
  }
  HeadMask& mask = problem.head_mask;
  mask.kind = HeadMask::Kind::given;
  mask.axes = {true, true, true, true};
  const Axes whole = problem.head_mask_axes();
  GivenHeadMask given;
  for (std::size_t axis = 0; axis < whole.size(); ++axis) {
    mask.axes[axis] = extents[axis] != 1;
    given.extents[axis] = extents[axis];
    if (extents[axis] == whole[axis].extent || extents[axis] == 1) continue;
    throw InvalidProblem("head_mask: " + std::string(whole[axis].name) + " is " +
                         std::to_string(extents[axis]) + "; it must be " +
                         std::to_string(whole[axis].extent) + " or 1");
  }
  std::int64_t elements = 1;
  for (const std::int64_t extent : given.extents) elements *= extent;
  for (std::int64_t at = 0; at < elements; ++at) given.visible.push_back(visible[at] != 0 ? 1 : 0);
  mask.given = std::make_shared<const GivenHeadMask>(std::move(given));
  problem.validate();
}

void give_bias(Problem& problem, const attest_tensor& tensor) {
  if (problem.bias.kind != Bias::Kind::none) {
    throw InvalidProblem("bias: '" + problem.bias.to_string() +
                         "' in the problem and a given one together; give one of them");
  }
  const Axes whole{{"batch", problem.batch, 0},
                   {"num_heads_q", problem.num_heads_q, 0},
                   {"seqlen_q", problem.seqlen_q, 0},
                   {"seqlen_k", problem.seqlen_k, 0}};
  if (tensor.ndim != static_cast<std::int32_t>(whole.size())) {
    throw InvalidProblem("bias: " + std::to_string(tensor.ndim) + " axes; it must have 4");
  }
  Axes axes = whole;
  Bias& bias = problem.bias;
  bias.kind = Bias::Kind::given;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    bias.axes[axis] = tensor.shape[axis] != 1;
    if (!bias.axes[axis]) axes[axis].extent = 1;
  }
  const TensorView view = view_like(tensor, "bias", axes);
  if (view.dtype() != problem.dtype && view.dtype() != DType::f32) {
    throw InvalidProblem("bias: its dtype is " + std::string(attest::name(view.dtype())) +
                         "; it must be the problem's, " + std::string(attest::name(problem.dtype)) +
                         ", or f32");
  }
  bias.single = view.dtype() != problem.dtype;
  GivenBias given{{axes[0].extent, axes[1].extent, axes[2].extent, axes[3].extent}, {}};
  for_each_index(view,
                 [&](auto i, auto j, auto k, auto l) { given.values.push_back(view(i, j, k, l)); });
  bias.given = std::make_shared<const GivenBias>(std::move(given));
  problem.validate();
}

// Returns a seed of cases that pass a gradient of LSE: the seed decides that.
std::uint64_t seed_with_dlse(const attest_description& description) {
  std::uint64_t seed = 0;
  while (!proptest::uses_dlse(description, seed)) ++seed;
  return seed;
}

}  // namespace

AttentionCall read_call(const attest_attention& given, proptest::Work work) {
  if (given.struct_size != sizeof given) {
    throw InvalidProblem("struct_size is " + std::to_string(given.struct_size) + ", not " +
                         std::to_string(sizeof given) + "; compile with this library's header");
  }
  if (given.problem == nullptr) {
    throw InvalidProblem("problem is not given; write for example sq=128,d=64");
  }
  AttentionCall call;
  call.contract = given.contract == nullptr ? "f32" : given.contract;
  call.description = parse_contract(call.contract);
  call.problem = Problem::parse(given.problem);
  Problem& problem = call.problem;
  if (is_paged(problem)) {
    throw InvalidProblem("paged_kv: K and V are given as they are gathered; leave paged_kv out");
  }
  if (given.boolean_mask != nullptr) problem.mask.boolean = given_mask(problem, given.boolean_mask);
  if (given.sinks != nullptr) give_sinks(problem, given.sinks);
  if (given.head_mask != nullptr) {
    give_head_mask(problem, given.head_mask, given.head_mask_extents);
  }
  if (given.bias != nullptr) give_bias(problem, *given.bias);
  proptest::require_affordable(call.description, problem, work);
  proptest::InputValues& values = call.values;
  values.Q = input(given.Q, "Q", problem.q_axes(), problem.dtype);
  values.K = input(given.K, "K", problem.k_axes(), problem.dtype);
  values.V = input(given.V, "V", problem.v_axes(), problem.dtype);
  values.dO = Tensor("dO", DType::f64, problem.o_axes());
  values.dLSE = Tensor("dLSE", DType::f64, problem.lse_axes());
  if (given.got.LSE != nullptr) call.description.features |= ATTEST_LSE;
  if (given.dLSE != nullptr) {
    if (given.dO == nullptr) throw InvalidProblem("dLSE is given without dO; give both");
    values.dLSE = packed(scalar_view(*given.dLSE, "dLSE", problem.lse_axes()), DType::f64,
                         problem.lse_axes());
    call.description.features |= ATTEST_DLSE;
    call.seed = seed_with_dlse(call.description);
  }
  if (given.dO != nullptr) {
    values.dO = input(given.dO, "dO", problem.o_axes(), problem.dtype);
    call.direction = Direction::backward;
  }
  return call;
}

proptest::KernelRun read_stored(const AttentionCall& call, const attest_results& got) {
  const Problem& problem = call.problem;
  proptest::KernelRun run;
  run.O = output(got.O, "O", problem.o_axes(), problem.dtype);
  if (got.LSE != nullptr) {
    const TensorView lse = scalar_view(*got.LSE, "LSE", problem.lse_axes());
    run.LSE = packed(lse, lse.dtype(), problem.lse_axes());
  }
  proptest::take_unwritten_as_empty(call.description, problem, run);
  return run;
}

proptest::KernelRun read_run(const AttentionCall& call, const attest_results& got) {
  proptest::KernelRun run = read_stored(call, got);
  if (call.direction == Direction::forward) return run;
  const Problem& problem = call.problem;
  run.dQ = output(got.dQ, "dQ", problem.q_axes(), problem.dtype);
  proptest::take_unwritten_as_empty(call.description, problem, run);
  run.dK = output(got.dK, "dK", problem.k_axes(), problem.dtype);
  run.dV = output(got.dV, "dV", problem.v_axes(), problem.dtype);
  if (problem.bias.kind != Bias::Kind::none) {
    if (got.dBias == nullptr)
      throw InvalidProblem("dBias is not given, and the problem has a bias");
    const TensorView of_bias = view_like(*got.dBias, "dBias", problem.bias_axes());
    if (of_bias.dtype() != problem.bias_dtype()) {
      throw InvalidProblem("dBias: its dtype is " + std::string(attest::name(of_bias.dtype())) +
                           ", that of the bias " + std::string(attest::name(problem.bias_dtype())));
    }
    run.dBias = packed(of_bias, of_bias.dtype(), problem.bias_axes());
  }
  if (problem.sinks == Sinks::none) return run;
  if (got.dSinks == nullptr) throw InvalidProblem("dSinks is not given, and the problem has sinks");
  const TensorView of_sinks = scalar_view(*got.dSinks, "dSinks", problem.sinks_axes());
  run.dSinks = packed(of_sinks, of_sinks.dtype(), problem.sinks_axes());
  return run;
}

void write(const Tensor& from, const attest_tensor& to) {
  Axes axes;
  for (std::size_t axis = 0; axis < from.view().rank(); ++axis) {
    axes.push_back(from.view().axis(axis));
  }
  const TensorView view = view_like(to, from.view().name(), axes);
  for_each_index(view,
                 [&](auto i, auto j, auto k, auto l) { view.set(from(i, j, k, l), i, j, k, l); });
}

}  // namespace attest::python
