#include <cstdint>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/kernels/emulated/moved_words.hpp"
#include "gpu/kernels/kernels.hpp"
#include "gpu/testing/call.hpp"

namespace attest::gpu {
namespace {

// All scores are 0 but for a bias that is 0 at one key of each row and far below at all others, or
// the deliberate mistake: every head has that of the first.
enum class Biases : std::uint8_t { own, first };

std::int64_t key_of(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t keys) {
  return (5 * b + 3 * h + 7 * i) % keys;
}

template <class Value>
void fill(const testing::StoredTensor& tensor, const Value& value) {
  const TensorView& view = tensor.view();
  attest::testing::for_each_element(
      view, [&](auto... index) { view.set(static_cast<double>(value(index...)), index...); });
}

float value_of(std::int64_t key, std::int64_t column) {
  return static_cast<float>((key * 7 + column * 13) % 251);
}

// Rows of O that are not the row of V that the bias points at.
std::int64_t wrong_rows(Biases biases) {
  constexpr double kFar = -1000;
  testing::Call call("b=2,hq=4,hkv=2,sq=70,sk=40,d=8,dv=24,scale=0,bias=bhqk_drawn_1");
  fill(call.V, [](auto, auto key, auto, auto column) { return value_of(key, column); });
  fill(call.bias, [&](auto b, auto h, auto i, auto j) {
    return j == key_of(b, biases == Biases::own ? h : 0, i, 40) ? 0 : kFar;
  });
  CHECK(call.forward(flash2_kernel().abi()) == ATTEST_OK);
  std::int64_t wrong = 0;
  attest::testing::for_each_element(call.O.view(), [&](auto b, auto i, auto h, auto column) {
    const float expected = value_of(key_of(b, h, i, 40), column);
    wrong += call.O(b, i, h, column) == static_cast<double>(expected) ? 0 : 1;
  });
  return wrong;
}

TEST_CASE("bias: each head and batch entry has its own", "[gpu][bias]") {
  CHECK(wrong_rows(Biases::own) == 0);
  CHECK(wrong_rows(Biases::first) > 0);
}

TEST_CASE("bias: no order of lanes and blocks changes a bit, and nothing is wrong in any",
          "[gpu][bias]") {
  const EmulatedKernel& kernel = flash2_kernel();
  for (const char* text : {"b=2,hq=4,hkv=2,sq=40,sk=70,d=24,mask=causal_br,bias=hqk_holes_7",
                           "b=2,hq=2,sq=9,sk=33,d=8,softcap=2,bias=k_drawn_3",
                           "hq=3,d=8,mask=cu_5x9_0x4_40x33+causal_br,bias=bhq_drawn_3",
                           "b=2,hq=2,sq=5,sk=7,d=8,sinks=drawn_3,bias=1_drawn_2"}) {
    INFO(text);
    std::vector<std::vector<std::uint64_t>> outputs;
    for (const simt::Emulation& emulation : testing::checked_orders()) {
      testing::Call call(text);
      EmulatedForward forward(call.forward_arguments(kernel.abi()));
      CHECK(kernel.directions().forward.run(forward, emulation).to_string().empty());
      EmulatedBackward backward(call.backward_arguments(kernel.abi()));
      CHECK(kernel.directions().backward.run(backward, emulation).to_string().empty());
      outputs.push_back(call.output_bits());
      CHECK(testing::unwritten(outputs.back()) == 0);
      CHECK(call.gaps_intact());
    }
    for (const auto& bits : outputs) CHECK(bits == outputs.front());
  }
}

TEST_CASE("a bias is no word of forward", "[gpu][bias]") {
  const auto moved = [](const char* text) {
    testing::Call call(text);
    EmulatedForward emulated(call.forward_arguments(flash2_kernel().abi()));
    const simt::LaunchReport report = flash2_kernel().directions().forward.run(emulated, {});
    return total(moved_by_tensor(emulated.memory, report.traffic, DType::f32));
  };
  CHECK(moved("hq=2,sq=40,sk=70,d=8,bias=hqk_drawn_7") == moved("hq=2,sq=40,sk=70,d=8"));
}

TEST_CASE("a bias is refused where it is not claimed", "[gpu][bias]") {
  for (const EmulatedKernel* entry : emulated_kernels()) {
    const attest_kernel& kernel = entry->abi();
    const bool claimed = (kernel.description.features & ATTEST_BIAS) != 0;
    INFO(kernel.description.name);
    testing::Call call(testing::spelled_for(kernel, "hq=2,sq=3,d=8,bias=k_drawn_7"));
    const attest_status expected = claimed ? ATTEST_OK : ATTEST_UNSUPPORTED;
    if (kernel.forward != nullptr) CHECK(call.forward(kernel) == expected);
    if (kernel.backward != nullptr && !claimed) CHECK(call.backward(kernel) == expected);
  }
}

}  // namespace
}  // namespace attest::gpu
