// Masks of heads, query lengths and windows with both ends anywhere in gpu/flash2.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/kernels/emulated/moved_words.hpp"
#include "gpu/kernels/kernels.hpp"
#include "gpu/testing/call.hpp"

namespace attest::gpu {
namespace {

// The mask that a kernel is given: its own, or the deliberate mistake, another.
enum class Given : std::uint8_t { own, other };

// Keys that a row sees by the definition.
std::vector<std::int64_t> keys_of(const Problem& p, const attest::Sequence& sequence,
                                  std::int64_t h, std::int64_t i) {
  std::vector<std::int64_t> keys;
  for (std::int64_t j = 0; j < sequence.k_length; ++j) {
    if (p.mask.visible(sequence, i, j) && p.shows(sequence.number, h, i, j)) keys.push_back(j);
  }
  return keys;
}

// Scores are all 0 and row j of V is j: O is the sum of the keys that a row sees, which is exact,
// over their number. Counts the rows of O that are not.
std::int64_t wrong_rows(const std::string& text, const std::string& other, Given given) {
  const Problem p = Problem::parse(text);
  testing::Call call(given == Given::own ? text : other);
  attest::testing::for_each_element(call.V.view(), [&](auto b, auto key, auto h, auto column) {
    call.V.view().set(static_cast<double>(key), b, key, h, column);
  });
  CHECK(call.forward(flash2_kernel().abi()) == ATTEST_OK);
  std::int64_t wrong = 0;
  for (const attest::Sequence& sequence : p.sequences()) {
    for (std::int64_t h = 0; h < p.num_heads_q; ++h) {
      for (std::int64_t i = 0; i < sequence.q_length; ++i) {
        float sum = 0;
        const std::vector<std::int64_t> keys = keys_of(p, sequence, h, i);
        for (const std::int64_t key : keys) sum += static_cast<float>(sequence.k_begin + key);
        const float mean = keys.empty() ? 0 : sum / static_cast<float>(keys.size());
        const double got = call.O(sequence.tensor_batch, sequence.q_begin + i, h, 0);
        wrong += got == static_cast<double>(mean) ? 0 : 1;
      }
    }
  }
  return wrong;
}

TEST_CASE("gpu/flash2: rows see the pairs of the definition", "[gpu][masks]") {
  const std::string sizes = "b=3,hq=4,hkv=2,sq=40,sk=70,d=8,scale=0,";
  for (const auto& [mask, other] :
       {std::pair("head_mask=bhqk_60_7", "head_mask=bhqk_60_9"),
        std::pair("mask=causal_br,head_mask=hk_50_2", "mask=causal_br,head_mask=hk_50_3"),
        std::pair("mask=causal_br,query_lengths=drawn_3", "mask=causal_br,query_lengths=drawn_4"),
        std::pair("mask=window_-1_9", "mask=window_0_9"),
        std::pair("mask=window_tl_inf_-1", "mask=window_tl_inf_0"),
        std::pair("mask=window_20_-4+lengths_70_3_33", "mask=window_20_-5+lengths_70_3_33"),
        std::pair("mask=window_-4611686018427387904_inf", "mask=window_-9_inf")}) {
    INFO(mask);
    CHECK(wrong_rows(sizes + mask, sizes + other, Given::own) == 0);
    CHECK(wrong_rows(sizes + mask, sizes + other, Given::other) > 0);
  }
}

TEST_CASE(
    "gpu/flash2: masks: no order of lanes and blocks changes a bit, and nothing is wrong in any",
    "[gpu][masks]") {
  const EmulatedKernel& kernel = flash2_kernel();
  for (const char* text :
       {"b=2,hq=4,hkv=2,sq=40,sk=70,d=24,mask=causal_br,head_mask=bhqk_60_7",
        "b=2,hq=2,sq=5,sk=9,d=8,sinks=drawn_3,bias=hk_holes_2,head_mask=bq_50_3",
        "b=4,hq=2,sq=40,sk=9,d=8,mask=causal_br,sinks=drawn_3,query_lengths=drawn_3",
        "hq=3,d=8,mask=cu_5x9_0x4_40x33+window_-1_3,query_lengths=drawn_2",
        "sq=9,sk=40,d=8,mask=window_7_-8"}) {
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

TEST_CASE("gpu/flash2: masks of heads are no words", "[gpu][masks]") {
  const auto moved = [](const char* text) {
    testing::Call call(text);
    EmulatedForward emulated(call.forward_arguments(flash2_kernel().abi()));
    const simt::LaunchReport report = flash2_kernel().directions().forward.run(emulated, {});
    return total(moved_by_tensor(emulated.memory, report.traffic, DType::f32));
  };
  CHECK(moved("hq=2,sq=40,sk=70,d=8,head_mask=hqk_60_7") == moved("hq=2,sq=40,sk=70,d=8"));
}

TEST_CASE(
    "masks of heads, query lengths and ends of windows are refused where they are not claimed",
    "[gpu][masks]") {
  for (const EmulatedKernel* entry : emulated_kernels()) {
    const attest_kernel& kernel = entry->abi();
    INFO(kernel.description.name);
    if (kernel.forward == nullptr) continue;
    for (const auto& [claim, field] : {std::pair(ATTEST_HEAD_MASK, "head_mask=hk_60_7"),
                                       std::pair(ATTEST_QUERY_LENGTHS, "query_lengths=drawn_3"),
                                       std::pair(ATTEST_OFFSET_WINDOW, "mask=window_3_-1")}) {
      const bool claimed = (kernel.description.features & static_cast<std::uint32_t>(claim)) != 0;
      const std::string text = std::string("hq=2,sq=3,d=8,") + field;
      testing::Call call(testing::spelled_for(kernel, text.c_str()));
      CHECK(call.forward(kernel) == (claimed ? ATTEST_OK : ATTEST_UNSUPPORTED));
    }
  }
}

}  // namespace
}  // namespace attest::gpu
