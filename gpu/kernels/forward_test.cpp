#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "gpu/kernels/flash2/flash2.cuh"
#include "gpu/kernels/flash2/flash2.hpp"
#include "gpu/testing/call.hpp"
#include "gpu/testing/forward_kernels.hpp"

namespace attest::gpu {
namespace {

using testing::unwritten;

std::vector<const char*> all_problems() {
  std::vector<const char*> all = testing::problems();
  const std::vector<const char*>& more = testing::sequence_problems();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST_CASE("no order of lanes and blocks changes a bit, and nothing is wrong in any",
          "[gpu][forward]") {
  std::size_t trial = 0;
  for (const EmulatedKernel* kernel : testing::forward_kernels()) {
    for (const std::string& text : testing::spellings_taken(*kernel, all_problems())) {
      if (!attest::testing::is_turn(trial++, 3)) continue;
      INFO(kernel->description().name << " " << text);
      std::vector<std::vector<std::uint64_t>> outputs;
      for (const simt::Emulation& emulation : testing::checked_orders()) {
        testing::Call call(text);
        EmulatedForward emulated(call.forward_arguments(kernel->abi()));
        CHECK(kernel->directions().forward.run(emulated, emulation).to_string().empty());
        outputs.push_back(call.forward_bits(kernel->abi()));
        CHECK(unwritten(outputs.back()) == 0);
        CHECK(call.gaps_intact());
      }
      for (const auto& bits : outputs) CHECK(bits == outputs.front());
    }
  }
}

TEST_CASE("O is the same with and without LSE", "[gpu][forward]") {
  for (const EmulatedKernel* kernel : testing::forward_kernels()) {
    for (const char* text : {"hq=2,sq=37,sk=70,d=9,mask=causal_br", "d=8,mask=cu_5x9_3x0_33x70"}) {
      INFO(kernel->description().name << " " << text);
      const std::string spelled = testing::spelled_for(kernel->abi(), text);
      testing::Call with(spelled), without(spelled);
      EmulatedForward emulated(with.forward_arguments(kernel->abi()));
      CHECK(kernel->directions().forward.run(emulated, {}).to_string().empty());
      attest_forward_args args = without.forward_arguments(kernel->abi());
      args.LSE = nullptr;
      EmulatedForward alone(args);
      CHECK(kernel->directions().forward.run(alone, {}).to_string().empty());
      CHECK(without.O.bits() == with.O.bits());
      CHECK(unwritten(without.O.bits()) == 0);
    }
  }
}

TEST_CASE("the description tells the largest head dimension", "[gpu][forward]") {
  for (const EmulatedKernel* entry : emulated_kernels()) {
    const attest_kernel& kernel = entry->abi();
    if (kernel.forward == nullptr) continue;
    const std::int64_t most = kernel.description.max_head_dim;
    INFO(kernel.description.name << " " << most);
    const auto forward = [&](std::int64_t head_dim) {
      testing::Call call(
          testing::spelled_for(kernel, ("sq=2,d=" + std::to_string(head_dim)).c_str()));
      const attest_status status = call.forward(kernel);
      const std::int64_t left = unwritten(call.O.bits());
      CHECK(left == (status == ATTEST_OK ? 0 : 2 * head_dim));  // all, or nothing
      return status;
    };
    const auto backward = [&](std::int64_t head_dim) {
      testing::Call call(
          testing::spelled_for(kernel, ("sq=2,d=" + std::to_string(head_dim)).c_str()));
      return call.backward(kernel);
    };
    CHECK(forward(most == 0 ? 3000 : most) == ATTEST_OK);
    if (most == 0) continue;
    if (kernel.backward == nullptr) {
      CHECK(forward(most + 1) == ATTEST_UNSUPPORTED);
    } else {
      CHECK(backward(most) == ATTEST_OK);
      CHECK((forward(most + 1) == ATTEST_UNSUPPORTED || backward(most + 1) == ATTEST_UNSUPPORTED));
    }
  }
}

TEST_CASE("head dimensions of latent attention are taken but for the tensor cores' kernels",
          "[gpu][forward]") {
  std::set<std::string> refusing;
  for (const EmulatedKernel* entry : testing::forward_kernels()) {
    const attest_kernel& kernel = entry->abi();
    INFO(kernel.description.name);
    testing::Call call(testing::spelled_for(kernel, "sq=3,sk=40,d=576,dv=512"));
    const bool takes = call.forward(kernel) == ATTEST_OK;
    if (!takes) refusing.insert(kernel.description.name);
    CHECK(unwritten(call.O.bits()) == (takes ? 0 : 3 * 512));
  }
  CHECK(refusing == std::set<std::string>{"gpu/flash2_tensor_core", "gpu/split_kv_tensor_core"});
}

TEST_CASE("wider heads and masks that a kernel does not take are refused", "[gpu][forward]") {
  for (const EmulatedKernel* entry : testing::forward_kernels()) {
    const attest_kernel& kernel = entry->abi();
    const std::vector<const char*> some = testing::taken(*entry, all_problems());
    for (const char* text : all_problems()) {
      INFO(kernel.description.name << " " << text);
      testing::Call call(testing::spelled_for(kernel, text));
      const std::int64_t most = kernel.description.max_head_dim,
                         widest = std::max(call.problem.head_dim_qk, call.problem.head_dim_v);
      const bool takes = std::find(some.begin(), some.end(), text) != some.end(),
                 boolean = (kernel.description.features & ATTEST_BOOLEAN_MASK) != 0,
                 mask_claimed = boolean || call.form.get()->mask.boolean == nullptr;
      if (!mask_claimed) CHECK_FALSE(takes);
      if (mask_claimed && (most == 0 || widest <= most)) CHECK(takes);
      if (takes) continue;  // the other tests call it
      CHECK(call.forward(kernel) == ATTEST_UNSUPPORTED);
      CHECK(unwritten(call.O.bits()) == static_cast<std::int64_t>(call.O.bits().size()));
    }
  }
}

TEST_CASE("little shared memory leaves the kernels whose tiles are shorter than a head dimension",
          "[gpu][forward]") {
  const auto fitting = [](std::int64_t shared_bytes) {
    std::set<std::string> names;
    for (const EmulatedKernel* kernel : testing::forward_kernels()) {
      testing::Call call(testing::spelled_for(kernel->abi(), "sq=3,sk=40,d=576,dv=512"));
      simt::Emulation emulation;
      emulation.shared_bytes_limit = shared_bytes;
      if (!kernel->directions().forward.fits(shape_of(*call.form.get()), emulation)) continue;
      EmulatedForward emulated(call.forward_arguments(kernel->abi()));
      const simt::LaunchReport report = kernel->directions().forward.run(emulated, emulation);
      CHECK(report.to_string().empty());
      CHECK(report.shared_bytes <= shared_bytes);
      names.insert(kernel->description().name);
    }
    return names;
  };
  CHECK(fitting(16 << 10) == std::set<std::string>{"gpu/standard", "gpu/standard_tensor_core",
                                                   "gpu/square_tiled",
                                                   "gpu/square_tiled_tensor_core"});
  CHECK(fitting(96 << 10) == std::set<std::string>{"gpu/standard", "gpu/standard_tensor_core",
                                                   "gpu/square_tiled",
                                                   "gpu/square_tiled_tensor_core", "gpu/hybrid",
                                                   "gpu/hybrid_tensor_core"});
}

TEST_CASE("other types of tensors are refused before anything is written", "[gpu][forward]") {
  for (const EmulatedKernel* entry : testing::forward_kernels()) {
    const attest_kernel& kernel = entry->abi();
    for (const char* text : {"sq=3,d=8,dtype=f32", "sq=3,d=8,dtype=bf16", "sq=3,d=8,dtype=f16"}) {
      INFO(kernel.description.name << " " << text);
      testing::Call call(text);
      const bool taken = entry->takes(call.form.get()->dtype);
      CHECK(call.forward(kernel) == (taken ? ATTEST_OK : ATTEST_UNSUPPORTED));
      CHECK(unwritten(call.O.bits()) == (taken ? 0 : 24));
    }
  }
}

TEST_CASE("LSE is refused where it is not claimed", "[gpu][forward]") {
  for (const EmulatedKernel* entry : testing::forward_kernels()) {
    const attest_kernel& kernel = entry->abi();
    INFO(kernel.description.name);
    testing::Call call(testing::spelled_for(kernel, "sq=3,d=8"));
    attest_forward_args args = call.forward_arguments(kernel);
    args.LSE = call.LSE.abi();
    const bool claimed = (kernel.description.features & ATTEST_LSE) != 0;
    CHECK(kernel.forward(kernel.self, &args) == (claimed ? ATTEST_OK : ATTEST_UNSUPPORTED));
    CHECK(unwritten(call.LSE.bits()) == (claimed ? 0 : 3));
  }
}

TEST_CASE("a workspace gives no more than it has", "[gpu][forward]") {
  std::vector<float> words(5);
  simt::GlobalMemory memory;
  Workspace workspace(words.data(), words.size() * sizeof(float));
  workspace.take(memory, "first", 2);
  workspace.take(memory, "second", 3);
  CHECK(memory.ranges()[1].data == reinterpret_cast<const std::byte*>(words.data() + 2));
  CHECK_THROWS_AS(workspace.take(memory, "third", 1), InternalError);
}

TEST_CASE("more blocks than a grid has are refused", "[gpu][forward]") {
  CHECK(blocks_for(33, 32, 70000, 3) == 2 * 70000 * std::int64_t{3});
  CHECK(blocks_for(0, 32, 8, 8) == 0);
  CHECK(fits({blocks_for(32, 32, kMostBlocks, 1), 32, 0}, {}));
  CHECK_FALSE(fits({blocks_for(33, 32, kMostBlocks, 1), 32, 0}, {}));
}

TEST_CASE("blocks find their heads beyond what other axes of a grid have", "[gpu][forward]") {
  constexpr std::int64_t kHeads = 70000, kBatch = 3, kRows = 33;
  const std::int64_t blocks = blocks_for(kRows, 32, kHeads, kBatch);
  const BlockPlace last = place_of_block(blocks - 1, kRows, 32, kHeads);
  CHECK(last.batch == kBatch - 1);
  CHECK(last.head == kHeads - 1);
  CHECK(last.first == 32);
}

}  // namespace
}  // namespace attest::gpu
