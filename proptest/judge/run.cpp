#include "proptest/judge/run.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/features/bias_tensor.hpp"
#include "core/features/pages.hpp"
#include "core/rng.hpp"
#include "core/workspace.hpp"
#include "proptest/judge/buffer.hpp"
#include "proptest/judge/past_lengths.hpp"

namespace attest::proptest {
namespace {

DType scalar_dtype(const Problem& problem) {
  return problem.dtype == DType::f64 ? DType::f64 : DType::f32;
}

// The bias of a call, and its gradient.
struct BiasBuffers {
  Buffer bias, dBias;
  Tensor before;

  // `axes`: those of problem.bias_axes() laid out.
  BiasBuffers(const Problem& problem, const std::vector<Axis>& axes)
      : bias("bias", problem.bias_dtype(), broadcast_bias(problem, axes)),
        dBias("dBias", problem.bias_dtype(), axes) {
    fill_bias(problem, bias.view());
    before = bias.packed_copy();
  }
  std::string changed() const {
    const std::string finding = bias.changed_since(before);
    return finding.empty() ? bias.disturbed() : finding;
  }
};

// K and V, each in memory of its own; or the narrower as columns of the wider, or of its copy.
class KeysAndValues {
 public:
  KeysAndValues(const Problem& problem, const InputValues& values, const std::vector<Axis>& k_axes,
                const std::vector<Axis>& v_axes) {
    const SharedColumns columns = problem.shared_columns();
    of_k_ = columns.of_k;
    const auto stored = [&](const Tensor& tensor) {
      return in_pages(problem, tensor, values.unused);
    };
    const Tensor wide = stored(of_k_ ? values.K : values.V);
    const std::vector<Axis>&wide_axes = of_k_ ? k_axes : v_axes,
          &narrow_axes = of_k_ ? v_axes : k_axes;
    if (!share_memory(problem, values)) {
      if (of_k_) wide_.emplace(wide, problem.dtype, wide_axes);
      narrow_.emplace(stored(of_k_ ? values.V : values.K), problem.dtype, narrow_axes);
      if (!of_k_) wide_.emplace(wide, problem.dtype, wide_axes);
      return;
    }
    wide_.emplace(wide, problem.dtype, wide_axes);
    const bool apart =
        problem.shared_kv == SharedKv::first_apart || problem.shared_kv == SharedKv::last_apart;
    if (apart) copy_.emplace(wide, problem.dtype, wide_axes);
    const Buffer& from = apart ? copy_->buffer : wide_->buffer;
    narrow_.emplace(from.columns(of_k_ ? "V" : "K", columns.first, narrow_axes.back().extent));
  }

  const Input& K() const { return of_k_ ? *wide_ : *narrow_; }
  const Input& V() const { return of_k_ ? *narrow_ : *wide_; }

 private:
  bool of_k_ = true;
  std::optional<Input> wide_, copy_, narrow_;
};

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
  const Input Q(values.Q, dtype, axes(problem.q_axes()));
  const auto k_axes = axes(stored_k_axes(problem), Repeat::heads),
             v_axes = axes(stored_v_axes(problem), Repeat::heads);
  const KeysAndValues inputs(problem, values, k_axes, v_axes);
  const Input &K = inputs.K(), &V = inputs.V();
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

  std::optional<BiasBuffers> bias;
  std::optional<KernelTensor> of_bias, d_bias;
  if (problem.bias.kind != Bias::Kind::none) {
    bias.emplace(problem, axes(problem.bias_axes()));
    of_bias.emplace(bias->bias, offset);
    d_bias.emplace(bias->dBias, offset);
  }
  const auto note_bias = [&] {
    if (!bias) return;
    note(bias->changed());
    note(of_bias->changed());
  };

  CallWords words;
  Workspace forward_space(workspace_bytes_of(kernel, *form.get(), ATTEST_FORWARD));
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
                                    words.size(),
                                    bias ? of_bias->get() : nullptr};
  result.status = kernel.forward(kernel.self, &forward);
  result.words = words.of(result.status);
  if (!known_status(result.status)) {
    note("forward returned unknown status " + std::to_string(static_cast<int>(result.status)));
  }
  note(forward_space.disturbed());
  note_inputs();
  note_bias();
  for (const Buffer* output : {&O, &LSE}) note(output->disturbed());
  result.O = O.packed_copy();
  if (wants_lse) result.LSE = LSE.packed_copy();
  const bool leaves_rows = may_leave_rows(kernel.description, problem);
  Tensor stored_O, stored_LSE;  // where they differ from what is judged
  if (leaves_rows) stored_O = result.O, stored_LSE = result.LSE;
  if (leaves_rows && result.status == ATTEST_OK) {
    note(written_past_lengths(problem, result.O));
    if (wants_lse) note(written_past_lengths(problem, result.LSE));
  }
  take_unwritten_as_empty(kernel.description, problem, result);
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
  Workspace backward_space(workspace_bytes_of(kernel, *form.get(), ATTEST_BACKWARD));
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
      has_sinks ? d_sinks.get() : nullptr,
      bias ? of_bias->get() : nullptr,
      bias ? d_bias->get() : nullptr};
  result.status = kernel.backward(kernel.self, &backward);
  result.words = words.of(result.status);
  if (!known_status(result.status)) {
    note("backward returned unknown status " + std::to_string(static_cast<int>(result.status)));
  }
  note(backward_space.disturbed());
  note_inputs();
  note_bias();
  for (const Input* input : {&dO, &dLSE}) note(input->changed());
  for (const KernelTensor* tensor : {&d_o, &d_lse, &d_q, &d_k, &d_v, &d_sinks})
    note(tensor->changed());
  note(O.changed_since(leaves_rows ? stored_O
                                   : result.O));  // outputs of forward are inputs of backward
  if (wants_lse) note(LSE.changed_since(leaves_rows ? stored_LSE : result.LSE));
  for (const Buffer* output : {&dQ, &dK, &dV, &dSinks, &O, &LSE}) note(output->disturbed());
  result.dQ = dQ.packed_copy();
  if (leaves_rows && result.status == ATTEST_OK) note(written_past_lengths(problem, result.dQ));
  take_unwritten_as_empty(kernel.description, problem, result);
  result.dK = dK.packed_copy();
  result.dV = dV.packed_copy();
  if (has_sinks) result.dSinks = dSinks.packed_copy();
  if (!bias) return result;
  note(d_bias->changed());
  note(bias->dBias.disturbed());
  result.dBias = bias->dBias.packed_copy();
  return result;
}

}  // namespace attest::proptest
