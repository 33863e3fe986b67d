#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/kernels/emulated/moved_words.hpp"
#include "gpu/kernels/kernels.hpp"
#include "gpu/testing/call.hpp"

namespace attest::gpu {
namespace {

using testing::StoredTensor;

// Sinks in the call of a kernel, or the deliberate mistake: each head has the sink of the first.
enum class Sinks : std::uint8_t { own, first };

std::vector<float> kept_by(Sinks kept, const std::vector<float>& sinks) {
  return kept == Sinks::own ? sinks : std::vector<float>(sinks.size(), sinks.front());
}

// Returns sinks of four heads: as large as the scores of keys, above and below all of them by so
// much that the exponential of the difference is 0, and none.
const std::vector<float>& exact_sinks() {
  static const std::vector<float> all{0, 200, -200, -std::numeric_limits<float>::infinity()};
  return all;
}

// All scores are 0, and the first thirty queries see no key.
constexpr const char* kProblem =
    "hq=4,hkv=2,sq=70,sk=40,d=8,dv=24,mask=causal_br,scale=0,sinks=drawn_1";
std::int64_t keys_of(std::int64_t query) { return query < 30 ? 0 : query - 29; }

template <class Value>
void fill(const StoredTensor& tensor, const Value& value) {
  const TensorView& view = tensor.view();
  attest::testing::for_each_element(
      view, [&](auto... index) { view.set(static_cast<double>(value(index...)), index...); });
}

float value_of(std::int64_t key, std::int64_t column) {
  return static_cast<float>((key * 7 + column * 13) % 251);
}

float expected_O(std::int64_t head, std::int64_t query, std::int64_t column) {
  const auto keys = static_cast<float>(keys_of(query));
  if (keys == 0 || head == 1) return 0;
  float sum = 0;
  for (std::int64_t key = 0; key < keys_of(query); ++key) sum += value_of(key, column);
  return sum / (head == 0 ? keys + 1 : keys);
}

float expected_LSE(std::int64_t head, std::int64_t query) {
  const auto keys = static_cast<float>(keys_of(query));
  if (keys == 0 || head == 1) return exact_sinks()[static_cast<std::size_t>(head)];
  return std::log(head == 0 ? keys + 1 : keys);
}

std::int64_t differing(const StoredTensor& is, const StoredTensor& should) {
  const std::vector<std::uint64_t> a = is.bits(), b = should.bits();
  std::int64_t count = 0;
  for (std::size_t k = 0; k < a.size(); ++k) count += a[k] != b[k] ? 1 : 0;
  return count;
}

simt::LaunchReport forward(const EmulatedKernel& kernel, testing::Call& call,
                           const std::vector<float>& sinks, const simt::Emulation& emulation) {
  attest_forward_args args = call.forward_arguments(kernel.abi());
  attest_problem problem = *args.problem;
  problem.sinks = sinks.data();
  args.problem = &problem;
  EmulatedForward emulated(args);
  return kernel.directions().forward.run(emulated, emulation);
}

simt::LaunchReport backward(const EmulatedKernel& kernel, testing::Call& call,
                            const std::vector<float>& sinks, const StoredTensor& dSinks,
                            const simt::Emulation& emulation) {
  attest_backward_args args = call.backward_arguments(kernel.abi());
  attest_problem problem = *args.problem;
  problem.sinks = sinks.data();
  args.problem = &problem;
  args.dSinks = dSinks.abi();
  EmulatedBackward emulated(args);
  return kernel.directions().backward.run(emulated, emulation);
}

std::vector<const EmulatedKernel*> kernels_with_sinks() {
  std::vector<const EmulatedKernel*> all;
  for (const EmulatedKernel* kernel : emulated_kernels()) {
    if ((kernel->description().features & ATTEST_SINKS) != 0) all.push_back(kernel);
  }
  return all;
}

// Elements of O and LSE that are not as they should be.
std::int64_t wrong_rows(const EmulatedKernel& kernel, const std::string& text, Sinks kept) {
  testing::Call call(text);
  fill(call.V, [](auto, auto key, auto, auto column) { return value_of(key, column); });
  const std::vector<float> sinks = kept_by(kept, exact_sinks());
  CHECK(forward(kernel, call, sinks, {}).to_string().empty());
  const StoredTensor O("O", call.problem.dtype, attest::testing::spelled(call.problem.o_axes())),
      LSE("LSE", DType::f32, attest::testing::spelled(call.problem.lse_axes()));
  fill(O, [](auto, auto i, auto h, auto column) { return expected_O(h, i, column); });
  fill(LSE, [](auto, auto h, auto i, auto) { return expected_LSE(h, i); });
  return differing(call.O, O) + differing(call.LSE, LSE);
}

TEST_CASE("sinks: each head's rows begin with its own", "[gpu][sinks]") {
  REQUIRE(kernels_with_sinks().size() == 2);
  for (const EmulatedKernel* kernel : kernels_with_sinks()) {
    for (const std::string& text : testing::spellings_for(kernel->abi(), kProblem)) {
      INFO(kernel->description().name << " " << text);
      CHECK(wrong_rows(*kernel, text, Sinks::own) == 0);
      CHECK(wrong_rows(*kernel, text, Sinks::first) > 0);
    }
  }
}

// A sink that has all the weight takes the whole of dLSE, one without weight nothing.
std::int64_t wrong_gradients(Sinks kept) {
  const float none = -std::numeric_limits<float>::infinity();
  const std::vector<float> sinks{-200, 200, none, 150};
  testing::Call call("b=2,hq=4,hkv=2,sq=70,sk=40,d=8,scale=0,sinks=drawn_1");
  fill(call.dLSE, [](auto b, auto h, auto i, auto) { return 100 * b + 7 * h + i % 5; });
  CHECK(forward(flash2_kernel(), call, sinks, {}).to_string().empty());
  const auto axes = attest::testing::spelled(call.problem.sinks_axes());
  const StoredTensor dSinks("dSinks", DType::f32, axes), wanted("wanted", DType::f32, axes);
  CHECK(backward(flash2_kernel(), call, kept_by(kept, sinks), dSinks, {}).to_string().empty());
  fill(wanted, [](auto h, auto, auto, auto) {
    if (h % 2 == 0) return std::int64_t{0};
    return 70 * (2 * 7 * h + 100 + 2 * 2);
  });
  return differing(dSinks, wanted);
}

TEST_CASE("sinks: each head's gradient is a sum over its own rows", "[gpu][sinks]") {
  CHECK(wrong_gradients(Sinks::own) == 0);
  CHECK(wrong_gradients(Sinks::first) > 0);
}

TEST_CASE("sinks: no order of lanes and blocks changes a bit, and nothing is wrong in any",
          "[gpu][sinks]") {
  for (const EmulatedKernel* kernel : kernels_with_sinks()) {
    for (const char* problem :
         {"b=2,hq=4,hkv=2,sq=40,sk=70,d=24,dv=40,mask=causal_br,sinks=drawn_7",
          "hq=3,d=8,mask=cu_5x9_0x4_70x33+causal_br,sinks=drawn_3", "sq=5,sk=0,d=8,sinks=off"}) {
      const std::string text = testing::spelled_for(kernel->abi(), problem);
      INFO(kernel->description().name << " " << text);
      std::vector<std::vector<std::uint64_t>> outputs;
      for (const simt::Emulation& emulation : testing::checked_orders()) {
        testing::Call call(text);
        const std::vector<float> sinks = call.problem.sink_scores();
        CHECK(forward(*kernel, call, sinks, emulation).to_string().empty());
        outputs.push_back(call.forward_bits(kernel->abi()));
        if (kernel->directions().backward.exists()) {
          const StoredTensor dSinks("dSinks", DType::f32,
                                    attest::testing::spelled(call.problem.sinks_axes()));
          CHECK(backward(*kernel, call, sinks, dSinks, emulation).to_string().empty());
          const auto gradients = testing::bits_of({&call.dQ, &call.dK, &call.dV, &dSinks});
          outputs.back().insert(outputs.back().end(), gradients.begin(), gradients.end());
        }
        CHECK(testing::unwritten(outputs.back()) == 0);
        CHECK(call.gaps_intact());
      }
      for (const auto& bits : outputs) CHECK(bits == outputs.front());
    }
  }
}

TEST_CASE("sinks are no words of forward", "[gpu][sinks]") {
  const auto moved = [](const char* text) {
    testing::Call call(text);
    EmulatedForward emulated(call.forward_arguments(flash2_kernel().abi()));
    const simt::LaunchReport report = flash2_kernel().directions().forward.run(emulated, {});
    return total(moved_by_tensor(emulated.memory, report.traffic, DType::f32));
  };
  CHECK(moved("hq=2,sq=40,sk=70,d=8,sinks=drawn_7") == moved("hq=2,sq=40,sk=70,d=8"));
}

TEST_CASE("sinks are refused where they are not claimed", "[gpu][sinks]") {
  for (const EmulatedKernel* entry : emulated_kernels()) {
    const attest_kernel& kernel = entry->abi();
    const bool claimed = (kernel.description.features & ATTEST_SINKS) != 0;
    INFO(kernel.description.name);
    testing::Call call(testing::spelled_for(kernel, "hq=2,sq=3,d=8,sinks=drawn_7"));
    const attest_status expected = claimed ? ATTEST_OK : ATTEST_UNSUPPORTED;
    if (kernel.forward != nullptr) CHECK(call.forward(kernel) == expected);
    if (kernel.backward != nullptr && !claimed) CHECK(call.backward(kernel) == expected);
  }
}

}  // namespace
}  // namespace attest::gpu
