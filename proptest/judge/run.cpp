#include "proptest/judge/run.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "proptest/judge/buffer.hpp"

namespace attest::proptest {
namespace {

DType scalar_dtype(const Problem& problem) {
  return problem.dtype == DType::f64 ? DType::f64 : DType::f32;
}

Workspace workspace_for(const attest_kernel& kernel, const attest_problem& problem,
                        std::uint32_t direction) {
  return Workspace(kernel.workspace_bytes == nullptr
                       ? 0
                       : kernel.workspace_bytes(kernel.self, &problem, direction));
}

}  // namespace

bool known_status(attest_status status) {
  return status == ATTEST_OK || status == ATTEST_UNSUPPORTED || status == ATTEST_FAILED;
}

std::string CallWords::of(attest_status status) const {
  if (status == ATTEST_OK) return "";
  return std::string(text_.begin(), std::find(text_.begin(), text_.end(), '\0'));
}

bool uses_dlse(const attest_description& description, std::uint64_t seed) {
  constexpr std::uint64_t kStream = 0x646c7365u;
  return (description.features & ATTEST_DLSE) != 0 && (mix(seed, kStream) & 1u) != 0;
}

Strides tensor_strides(const attest_description& description, const Problem& problem,
                       std::uint64_t seed, std::uint64_t tensor) {
  if (problem.strides != Strides::mixed) return problem.strides;
  constexpr std::array<Strides, 4> kChoices{Strides::packed, Strides::padded, Strides::transposed,
                                            Strides::interleaved};
  const bool any = (description.features & ATTEST_ANY_STRIDES) != 0;
  const std::size_t count = any ? kChoices.size() : 2;  // the first two need no claim
  constexpr std::uint64_t kStream = 0x6d6978u;
  return kChoices[static_cast<std::size_t>(mix(mix(seed, kStream), tensor) % count)];
}

Strides scalar_strides(const attest_description& description, const Problem& problem,
                       std::uint64_t seed) {
  constexpr std::array<Strides, 4> kChoices{Strides::packed, Strides::padded, Strides::transposed,
                                            Strides::interleaved};
  constexpr std::uint64_t kStream = 0x6c7365u;
  const bool any = (description.features & ATTEST_ANY_STRIDES) != 0;
  if (!any || problem.strides == Strides::packed) return Strides::packed;
  return kChoices[static_cast<std::size_t>(mix(seed, kStream) % kChoices.size())];
}

std::optional<Problem>& problem_of_last_run() {
  thread_local std::optional<Problem> problem;
  return problem;
}

KernelRun run(const attest_kernel& kernel, const Problem& problem, const InputValues& values,
              Direction direction, const Case& of, LseRequest request) {
  if (request == LseRequest::never && direction != Direction::forward) {
    throw InternalError("run: the backward call gets LSE, so the forward call must ask for it");
  }
  problem_of_last_run() = problem;
  SameMemory::begin_run();
  std::uint64_t laid_out = 0;  // tensors of the call, in the order they are laid out
  const auto axes = [&](const std::vector<Axis>& logical, Repeat repeat = Repeat::none) {
    return lay_out(logical, problem.layout,
                   tensor_strides(kernel.description, problem, of.seed, laid_out++), repeat);
  };
  const DType dtype = problem.dtype, scalar = scalar_dtype(problem);
  const auto scalars = lay_out(problem.lse_axes(), problem.layout,
                               scalar_strides(kernel.description, problem, of.seed), Repeat::none);
  const Input Q(values.Q, dtype, axes(problem.q_axes())),
      K(values.K, dtype, axes(problem.k_axes(), Repeat::heads)),
      V(values.V, dtype, axes(problem.v_axes(), Repeat::heads));
  Buffer O("O", dtype, axes(problem.o_axes())), LSE("LSE", scalar, scalars);
  const AbiProblem form(problem, of.threads, kernel.description.features);
  const std::uint64_t offset = byte_offset_of(problem.strides);
  const KernelTensor q(Q.buffer, offset), k(K.buffer, offset), v(V.buffer, offset), o(O, offset),
      lse(LSE, offset);
  const bool wants_lse =
      request == LseRequest::where_claimed && (kernel.description.features & ATTEST_LSE) != 0;

  KernelRun result;
  const auto note = [&result](const std::string& finding) {
    if (result.misconduct.empty()) result.misconduct = finding;
  };
  const auto note_inputs = [&] {
    for (const Input* input : {&Q, &K, &V}) note(input->changed());
    note(form.changed());
    for (const KernelTensor* tensor : {&q, &k, &v, &o, &lse}) note(tensor->changed());
  };

  CallWords words;
  Workspace forward_space = workspace_for(kernel, *form.get(), ATTEST_FORWARD);
  const attest_forward_args forward{sizeof(attest_forward_args),
                                    form.get(),
                                    q.get(),
                                    k.get(),
                                    v.get(),
                                    o.get(),
                                    wants_lse ? lse.get() : nullptr,
                                    forward_space.data(),
                                    forward_space.size(),
                                    nullptr,
                                    words.data(),
                                    words.size()};
  result.status = kernel.forward(kernel.self, &forward);
  result.words = words.of(result.status);
  if (!known_status(result.status)) {
    note("forward returned unknown status " + std::to_string(static_cast<int>(result.status)));
  }
  note(forward_space.disturbed());
  note_inputs();
  for (const Buffer* output : {&O, &LSE}) note(output->disturbed());
  result.O = O.packed_copy();
  if (wants_lse) result.LSE = LSE.packed_copy();
  if (direction == Direction::forward || !result.completed()) return result;

  const Input dO(values.dO, dtype, axes(problem.o_axes(), Repeat::rows)),
      dLSE(values.dLSE, scalar, scalars);
  Buffer dQ("dQ", dtype, axes(problem.q_axes())), dK("dK", dtype, axes(problem.k_axes())),
      dV("dV", dtype, axes(problem.v_axes())),
      dSinks("dSinks", scalar,
             lay_out(problem.sinks_axes(), problem.layout, Strides::packed, Repeat::none));
  const bool has_sinks = problem.sinks != Sinks::none;
  const KernelTensor d_o(dO.buffer, offset), d_lse(dLSE.buffer, offset), d_q(dQ, offset),
      d_k(dK, offset), d_v(dV, offset), d_sinks(dSinks, offset);
  Workspace backward_space = workspace_for(kernel, *form.get(), ATTEST_BACKWARD);
  const attest_backward_args backward{
      sizeof(attest_backward_args),
      form.get(),
      q.get(),
      k.get(),
      v.get(),
      o.get(),
      wants_lse ? lse.get() : nullptr,
      d_o.get(),
      uses_dlse(kernel.description, of.seed) ? d_lse.get() : nullptr,
      d_q.get(),
      d_k.get(),
      d_v.get(),
      backward_space.data(),
      backward_space.size(),
      nullptr,
      words.data(),
      words.size(),
      has_sinks ? d_sinks.get() : nullptr};
  result.status = kernel.backward(kernel.self, &backward);
  result.words = words.of(result.status);
  if (!known_status(result.status)) {
    note("backward returned unknown status " + std::to_string(static_cast<int>(result.status)));
  }
  note(backward_space.disturbed());
  note_inputs();
  for (const Input* input : {&dO, &dLSE}) note(input->changed());
  for (const KernelTensor* tensor : {&d_o, &d_lse, &d_q, &d_k, &d_v, &d_sinks})
    note(tensor->changed());
  note(O.changed_since(result.O));  // outputs of forward are inputs of backward
  if (wants_lse) note(LSE.changed_since(result.LSE));
  for (const Buffer* output : {&dQ, &dK, &dV, &dSinks, &O, &LSE}) note(output->disturbed());
  result.dQ = dQ.packed_copy();
  result.dK = dK.packed_copy();
  result.dV = dV.packed_copy();
  if (has_sinks) result.dSinks = dSinks.packed_copy();
  return result;
}

}  // namespace attest::proptest
