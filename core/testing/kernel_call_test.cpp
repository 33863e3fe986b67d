// The harness of calls sees the byte that a kernel writes beside what it was given.
#include "core/testing/kernel_call.hpp"

#include <algorithm>

#include "core/testing/catch.hpp"

namespace attest::testing {
namespace {

enum class Mistake { none, before_output, between_elements, behind_output, around_workspace };

std::byte* first_byte(const attest_tensor& tensor) {
  return static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
}

std::int64_t span(const attest_tensor& tensor) {
  std::int64_t last = 0;
  for (int axis = 0; axis < tensor.ndim; ++axis) {
    last += (tensor.shape[axis] - 1) * tensor.strides[axis];
  }
  return last + 1;
}

// Writes zeros: to the elements of `output`, to the workspace, and by mistake to a byte beside.
attest_status write(const void* self, const attest_tensor* output, void* workspace,
                    std::size_t workspace_bytes) {
  const auto mistake = *static_cast<const Mistake*>(self);
  const std::vector<std::string_view> names{"batch", "seqlen_q", "num_heads_q", "head_dim"};
  const TensorView view =
      view_of(*output, "output",
              {names.begin(), names.begin() + static_cast<std::ptrdiff_t>(output->ndim)});
  for_each_element(view, [&](auto... index) { view.set(0, index...); });
  std::byte* const first = first_byte(*output);
  std::byte* const behind = first + static_cast<std::size_t>(span(*output)) * sizeof(float);
  if (mistake == Mistake::before_output) first[-1] = std::byte{0};
  if (mistake == Mistake::behind_output) *behind = std::byte{0};
  if (mistake == Mistake::between_elements) {
    // The elements are zero by now.
    *std::find(first, behind, std::byte{0xff}) = std::byte{0};
  }
  auto* const space = static_cast<std::byte*>(workspace);
  std::fill_n(space, workspace_bytes, std::byte{0});
  if (mistake == Mistake::around_workspace) space[workspace_bytes] = std::byte{0};
  return ATTEST_OK;
}

attest_kernel kernel_with(Mistake& mistake) {
  attest_kernel kernel{};
  kernel.self = &mistake;
  kernel.workspace_bytes = [](const void*, const attest_problem*, std::uint32_t) {
    return std::size_t{12};
  };
  kernel.forward = [](const void* self, const attest_forward_args* args) {
    return write(self, args->O, args->workspace, args->workspace_bytes);
  };
  kernel.backward = [](const void* self, const attest_backward_args* args) {
    return write(self, args->dK, args->workspace, args->workspace_bytes);
  };
  kernel.loss_gradient = [](const void* self, const attest_loss_args* args) {
    return write(self, args->dX, args->workspace, args->workspace_bytes);
  };
  return kernel;
}

const Mistake kBeside[] = {Mistake::before_output, Mistake::between_elements,
                           Mistake::behind_output, Mistake::around_workspace};

// Runs a kernel with the mistake and returns gaps_intact().
bool intact(Mistake mistake, std::uint64_t seed, std::uint32_t direction) {
  const attest_kernel kernel = kernel_with(mistake);
  if (direction == ATTEST_LOSS_GRADIENT) {
    LossCall call(loss_problem(5, 3), seed, Memory::scattered);
    CHECK(call.run(kernel) == ATTEST_OK);
    CHECK(unwritten(call.dX.bits()) == 0);
    CHECK(call.dY.untouched());
    return call.gaps_intact();
  }
  Call call(Problem::parse("b=2,hq=2,sq=3,d=4"), seed, {Memory::scattered});
  const bool forward = direction == ATTEST_FORWARD;
  CHECK((forward ? call.forward(kernel) : call.backward(kernel)) == ATTEST_OK);
  CHECK(unwritten((forward ? call.O : call.dK).bits()) == 0);
  CHECK(unwritten(call.output_bits()) == std::ssize(call.output_bits()) - 48);
  CHECK(call.dV.untouched());
  return call.gaps_intact();
}

TEST_CASE("a byte written beside the elements and around the workspace is seen", "[harness]") {
  for (const std::uint32_t direction : {ATTEST_FORWARD, ATTEST_BACKWARD, ATTEST_LOSS_GRADIENT}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      INFO("direction " << direction << " seed " << seed);
      CHECK(intact(Mistake::none, seed, direction));
      for (const Mistake mistake : kBeside) CHECK_FALSE(intact(mistake, seed, direction));
    }
  }
}

TEST_CASE("values depend on the seed, not on where they lie", "[harness]") {
  const Problem problem = Problem::parse("b=2,hq=2,sq=3,d=4,dtype=bf16");
  const Call packed(problem, 3, {}), elsewhere(problem, 3, {Memory::scattered, 5}),
      other(problem, 4, {});
  for (const auto input : {&Call::Q, &Call::K, &Call::V, &Call::dO, &Call::dLSE}) {
    CHECK((packed.*input).bits() == (elsewhere.*input).bits());
    CHECK((packed.*input).bits() != (other.*input).bits());
    CHECK(unwritten((packed.*input).bits()) == 0);
  }
  CHECK(unwritten(packed.output_bits()) == std::ssize(packed.output_bits()));
}

TEST_CASE("tensors lie as the problem's strides say, or scattered with a byte offset",
          "[harness]") {
  const auto strides = [](const std::string& spelling, Memory memory = Memory::spelled) {
    const Call call(Problem::parse("b=2,hq=3,sq=5,d=7,strides=" + spelling), 1, {memory});
    const std::int64_t* const all = call.Q.abi()->strides;
    return std::vector<std::int64_t>(all, all + 4);
  };
  CHECK(strides("packed") == std::vector<std::int64_t>{105, 21, 7, 1});
  CHECK(strides("padded") == std::vector<std::int64_t>{10 * 6 * 8, 10 * 6, 10, 1});
  CHECK(strides("transposed") == std::vector<std::int64_t>{15, 3, 1, 30});
  CHECK(strides("interleaved") == std::vector<std::int64_t>{210, 42, 14, 2});
  CHECK(strides("packed", Memory::scattered) != strides("packed"));
  const Call scattered(Problem::parse("sq=5,d=7"), 1, {Memory::scattered});
  CHECK(scattered.Q.abi()->byte_offset > 0);
  CHECK(first_byte(*scattered.Q.abi()) == scattered.Q.view().data());
}

}  // namespace
}  // namespace attest::testing
