#include "proptest/run.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "proptest/buffer.hpp"

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

const char* word(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return "forward";
    case Direction::backward:
      return "backward";
    case Direction::loss_gradient:
      break;
  }
  return "loss gradient";
}

std::uint32_t bit(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return ATTEST_FORWARD;
    case Direction::backward:
      return ATTEST_BACKWARD;
    case Direction::loss_gradient:
      break;
  }
  return ATTEST_LOSS_GRADIENT;
}

// What the loss of Li et al. does not have.
std::string beyond_the_loss(const Problem& p) {
  if (p.batch != 1 || p.num_heads_q != 1 || p.num_heads_kv != 1) {
    return "loss gradient of several heads";
  }
  if (p.seqlen_q != p.seqlen_k) return "loss gradient with seqlen_q != seqlen_k";
  if (p.head_dim_qk != p.head_dim_v) return "loss gradient with head_dim_v != head_dim_qk";
  if (p.seqlen_q == 0) return "loss gradient of no rows";
  const Pattern& mask = p.mask;
  if (mask.banded() || mask.packed() || mask.boolean || !mask.key_lengths.empty()) {
    return "loss gradient with a mask";
  }
  if (p.softcap > 0 || p.alibi != Alibi::none) return "loss gradient with softcap or ALiBi";
  if (p.softmax_scale) return "loss gradient with a softmax scale (it is part of X)";
  return "";
}

}  // namespace

bool known_status(attest_status status) {
  return status == ATTEST_OK || status == ATTEST_UNSUPPORTED || status == ATTEST_FAILED;
}

std::string unclaimed(const attest_description& d, const Problem& p, Direction direction) {
  const auto lacks = [&](std::uint32_t feature) { return (d.features & feature) == 0; };
  if ((d.directions & bit(direction)) == 0) return word(direction);
  if (direction == Direction::loss_gradient) {
    std::string beyond = beyond_the_loss(p);
    if (!beyond.empty()) return beyond;
  }
  if ((d.dtypes & (1u << abi(p.dtype))) == 0) return "dtype " + std::string(name(p.dtype));
  if (d.max_head_dim > 0 && std::max(p.head_dim_qk, p.head_dim_v) > d.max_head_dim) {
    return "head_dim above " + std::to_string(d.max_head_dim);
  }
  if (d.head_dim_multiple > 1 &&
      (p.head_dim_qk % d.head_dim_multiple != 0 || p.head_dim_v % d.head_dim_multiple != 0)) {
    return "head_dim not a multiple of " + std::to_string(d.head_dim_multiple);
  }
  const Pattern& mask = p.mask;
  const bool causal = mask.window_left < 0 && mask.window_right == 0;
  if (causal && mask.align == CausalAlign::top_left && lacks(ATTEST_CAUSAL_TOP_LEFT)) {
    return "causal top-left";
  }
  if (causal && mask.align == CausalAlign::bottom_right && lacks(ATTEST_CAUSAL_BOTTOM_RIGHT)) {
    return "causal bottom-right";
  }
  if (mask.banded() && !causal && lacks(ATTEST_WINDOW)) return "window";
  if (!mask.key_lengths.empty() && lacks(ATTEST_KEY_LENGTHS)) return "key lengths";
  if (mask.packed() && lacks(ATTEST_PACKED_SEQUENCES)) return "packed sequences";
  if (mask.boolean && mask_form(mask.sparsity(), d.features) == 0) {
    return mask.sparsity() != nullptr ? "sparsity pattern" : "boolean mask";
  }
  if (p.num_heads_q != p.num_heads_kv && lacks(ATTEST_GQA)) return "grouped-query heads";
  if (p.head_dim_qk != p.head_dim_v && lacks(ATTEST_HEAD_DIM_V)) return "head_dim_v != head_dim_qk";
  if (p.softcap > 0 && lacks(ATTEST_SOFTCAP)) return "softcap";
  if (p.alibi != Alibi::none && lacks(ATTEST_ALIBI)) return "ALiBi";
  if (p.scale() <= 0 && lacks(ATTEST_ANY_SCALE)) return "softmax_scale <= 0";
  if (p.seqlen_q != p.seqlen_k && lacks(ATTEST_CROSS_LENGTHS)) return "seqlen_q != seqlen_k";
  const bool odd_strides = p.strides == Strides::transposed || p.strides == Strides::interleaved ||
                           p.strides == Strides::broadcast;
  if (odd_strides && lacks(ATTEST_ANY_STRIDES)) return "strides " + std::string(name(p.strides));
  if (p.strides == Strides::huge && d.device == ATTEST_CUDA) return kHugeOnDevice;
  if (!lacks(ATTEST_EMPTY_ROWS)) return "";
  for (const Sequence& sequence : p.sequences()) {
    if (sequence.q_length == 0 || sequence.visible_keys == 0) return "zero-length sequences";
    for (std::int64_t i = 0; i < sequence.q_length; ++i) {
      const KeyRange range = mask.band(sequence, i);
      bool any = !mask.boolean && range.begin < range.end;
      for (std::int64_t j = range.begin; mask.boolean && j < range.end && !any; ++j) {
        any = mask.visible(sequence, i, j);
      }
      if (!any) return "rows without a visible key";
    }
  }
  return "";
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

KernelRun run(const attest_kernel& kernel, const Problem& problem, const InputValues& values,
              Direction direction, const Case& of, LseRequest request) {
  if (request == LseRequest::never && direction != Direction::forward) {
    throw InternalError("run: the backward call needs LSE, so the forward call must ask for it");
  }
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
                                    nullptr};
  result.status = kernel.forward(kernel.self, &forward);
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
      dV("dV", dtype, axes(problem.v_axes()));
  const KernelTensor d_o(dO.buffer, offset), d_lse(dLSE.buffer, offset), d_q(dQ, offset),
      d_k(dK, offset), d_v(dV, offset);
  Workspace backward_space = workspace_for(kernel, *form.get(), ATTEST_BACKWARD);
  const attest_backward_args backward{
      sizeof(attest_backward_args),
      form.get(),
      q.get(),
      k.get(),
      v.get(),
      o.get(),
      lse.get(),
      d_o.get(),
      uses_dlse(kernel.description, of.seed) ? d_lse.get() : nullptr,
      d_q.get(),
      d_k.get(),
      d_v.get(),
      backward_space.data(),
      backward_space.size(),
      nullptr};
  result.status = kernel.backward(kernel.self, &backward);
  if (!known_status(result.status)) {
    note("backward returned unknown status " + std::to_string(static_cast<int>(result.status)));
  }
  note(backward_space.disturbed());
  note_inputs();
  for (const Input* input : {&dO, &dLSE}) note(input->changed());
  for (const KernelTensor* tensor : {&d_o, &d_lse, &d_q, &d_k, &d_v}) note(tensor->changed());
  note(O.changed_since(result.O));  // outputs of forward are inputs of backward
  note(LSE.changed_since(result.LSE));
  for (const Buffer* output : {&dQ, &dK, &dV, &O, &LSE}) note(output->disturbed());
  result.dQ = dQ.packed_copy();
  result.dK = dK.packed_copy();
  result.dV = dV.packed_copy();
  return result;
}

}  // namespace attest::proptest
