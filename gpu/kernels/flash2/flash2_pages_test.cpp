#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "core/testing/paged_call.hpp"
#include "gpu/kernels/emulated/moved_words.hpp"
#include "gpu/kernels/kernels.hpp"
#include "gpu/testing/call.hpp"

namespace attest::gpu {
namespace {

const char* const kPaged[] = {"b=2,hq=4,hkv=2,sq=40,sk=70,d=24,dv=40,mask=causal_br,paged_kv=16_7",
                              "b=3,hq=2,sq=3,sk=48,d=8,mask=lengths_48_0_17,paged_kv=1_4",
                              "hq=3,d=8,mask=cu_5x9_0x4_70x33+causal_br,sinks=drawn_3,paged_kv=5_3",
                              "b=2,sq=1,sk=40,d=8,paged_kv=64_2", "sq=5,sk=0,d=8,paged_kv=4_1"};

std::vector<const EmulatedKernel*> kernels_with_pages() {
  std::vector<const EmulatedKernel*> all;
  for (const EmulatedKernel* kernel : emulated_kernels()) {
    if ((kernel->description().features & ATTEST_PAGED_KV) != 0) all.push_back(kernel);
  }
  return all;
}

// The deliberate mistake: entries of the block table are those of the batch entry before.
enum class Table : std::uint8_t { own, of_another };

struct Result {
  std::string found;
  std::vector<std::uint64_t> bits;
};

Result forward(const EmulatedKernel& kernel, testing::Call& call, Table table,
               const simt::Emulation& emulation) {
  attest_forward_args args = call.forward_arguments(kernel.abi());
  attest_problem problem = *args.problem;
  attest_paged_kv pages{};
  std::vector<std::int32_t> other;
  if (table == Table::of_another && problem.paged_kv != nullptr) {
    pages = *problem.paged_kv;
    other.assign(pages.block_table, pages.block_table + problem.batch * pages.max_pages);
    std::rotate(other.begin(), other.begin() + 1, other.end());
    pages.block_table = other.data();
    problem.paged_kv = &pages;
  }
  args.problem = &problem;
  EmulatedForward emulated(args);
  const std::string found = kernel.directions().forward.run(emulated, emulation).to_string();
  return {found, call.forward_bits(kernel.abi())};
}

TEST_CASE("pages: equal to keys in their order, to the bit, in every order of lanes and blocks",
          "[gpu][pages]") {
  REQUIRE(kernels_with_pages().size() == 2);
  for (const EmulatedKernel* kernel : kernels_with_pages()) {
    for (const char* problem : kPaged) {
      for (const std::string& text : testing::spellings_for(kernel->abi(), problem)) {
        INFO(kernel->description().name << " " << text);
        const testing::Call first(text);
        testing::Call dense(attest::testing::without_pages(first.problem).to_string());
        attest::testing::take_values(first, dense);
        const Result wanted = forward(*kernel, dense, Table::own, {});
        for (const simt::Emulation& emulation : testing::checked_orders()) {
          testing::Call call(text);
          const Result got = forward(*kernel, call, Table::own, emulation);
          CHECK(got.found.empty());
          CHECK(got.bits == wanted.bits);
          CHECK(call.gaps_intact());
        }
      }
    }
  }
}

TEST_CASE("pages of another batch entry give another result", "[gpu][pages]") {
  for (const EmulatedKernel* kernel : kernels_with_pages()) {
    const std::string text = testing::spelled_for(kernel->abi(), kPaged[0]);
    testing::Call right(text), wrong(text);
    CHECK(forward(*kernel, right, Table::own, {}).bits !=
          forward(*kernel, wrong, Table::of_another, {}).bits);
  }
}

TEST_CASE("the block table is no words of forward", "[gpu][pages]") {
  const auto moved = [](const char* text) {
    testing::Call call(text);
    EmulatedForward emulated(call.forward_arguments(flash2_kernel().abi()));
    const simt::LaunchReport report = flash2_kernel().directions().forward.run(emulated, {});
    return total(moved_by_tensor(emulated.memory, report.traffic, DType::f32));
  };
  CHECK(moved("hq=2,sq=40,sk=70,d=8,paged_kv=16_7") == moved("hq=2,sq=40,sk=70,d=8"));
}

TEST_CASE("pages are refused where they are not claimed, and backward", "[gpu][pages]") {
  for (const EmulatedKernel* entry : emulated_kernels()) {
    const attest_kernel& kernel = entry->abi();
    const bool claimed = (kernel.description.features & ATTEST_PAGED_KV) != 0;
    INFO(kernel.description.name);
    testing::Call call(testing::spelled_for(kernel, "hq=2,sq=3,d=8,paged_kv=2_7"));
    if (kernel.forward != nullptr) {
      CHECK(call.forward(kernel) == (claimed ? ATTEST_OK : ATTEST_UNSUPPORTED));
    }
    if (kernel.backward != nullptr) CHECK(call.backward(kernel) == ATTEST_UNSUPPORTED);
  }
}

}  // namespace
}  // namespace attest::gpu
