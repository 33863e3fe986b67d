#include <algorithm>
#include <vector>

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "gpu/kernels/emulated/families.hpp"
#include "gpu/testing/call.hpp"

namespace attest::gpu {
namespace {

struct Outcome {
  simt::LaunchReport report;
  std::vector<std::uint64_t> bits;
};

Outcome forward(const EmulatedKernel& kernel, const char* text, const simt::Emulation& emulation) {
  testing::Call call(text);
  EmulatedForward emulated(call.forward_arguments(kernel.abi()));
  const simt::LaunchReport report = kernel.directions().forward.run(emulated, emulation);
  return {report, call.forward_bits(kernel.abi())};
}

Outcome backward(const EmulatedKernel& kernel, const char* text, const simt::Emulation& emulation) {
  testing::Call call(text);
  EmulatedForward before(call.forward_arguments(kernel.abi()));
  kernel.directions().forward.run(before, {});
  EmulatedBackward emulated(call.backward_arguments(kernel.abi()));
  const simt::LaunchReport report = kernel.directions().backward.run(emulated, emulation);
  return {report, testing::bits_of({&call.dQ, &call.dK, &call.dV})};
}

Outcome loss_gradient(const EmulatedKernel& kernel, const simt::Emulation& emulation) {
  testing::LossCall call(testing::loss_problem(37, 33));
  EmulatedLoss emulated(call.arguments(kernel.abi()));
  const simt::LaunchReport report = kernel.directions().loss_gradient.run(emulated, emulation);
  return {report, testing::bits_of({&call.dX, &call.dY})};
}

Outcome run(const Family& family, const EmulatedKernel& kernel, const char* text,
            const simt::Emulation& emulation) {
  if (family.direction == ATTEST_FORWARD) return forward(kernel, text, emulation);
  if (family.direction == ATTEST_BACKWARD) return backward(kernel, text, emulation);
  return loss_gradient(kernel, emulation);
}

TEST_CASE("tiles of every size: no order changes a bit, and nothing is wrong in any",
          "[gpu][variants]") {
  std::size_t trial = 0;
  for (const Family& family : families()) {
    for (const Variant& variant : family.variants) {
      for (const char* text : {"b=2,hq=4,hkv=2,sq=20,sk=35,d=9,dv=6,mask=causal_br",
                               "hq=2,sq=19,sk=40,d=7,mask=random_3_1"}) {
        if (!attest::testing::is_turn(trial++, 3)) continue;
        INFO(variant.kernel->description().name << " " << text);
        std::vector<std::vector<std::uint64_t>> outputs;
        for (const simt::Emulation& emulation : testing::checked_orders()) {
          const Outcome outcome = run(family, *variant.kernel, text, emulation);
          CHECK(outcome.report.to_string().empty());
          CHECK(testing::unwritten(outcome.bits) == 0);
          outputs.push_back(outcome.bits);
        }
        for (const auto& bits : outputs) CHECK(bits == outputs.front());
      }
    }
  }
}

TEST_CASE("tiles of every size: shared memory is what the emulation saw", "[gpu][variants]") {
  for (const Family& family : families()) {
    for (const Variant& variant : family.variants) {
      const char* const text = "sq=37,d=33";
      INFO(variant.kernel->description().name);
      const AttentionShape shape = shape_of(*testing::Call(text).form.get());
      const EmulatedDirections& all = variant.kernel->directions();
      const LaunchPlan plan = family.direction == ATTEST_FORWARD    ? all.forward.plan(shape)
                              : family.direction == ATTEST_BACKWARD ? all.backward.plan(shape)
                                                                    : all.loss_gradient.plan(shape);
      std::int64_t most = 0;
      for (const PlannedLaunch& launch : plan.launches()) {
        most = std::max(most, launch.line.dynamic_shared_bytes + launch.line.static_shared_bytes);
      }
      CHECK(most == run(family, *variant.kernel, text, {}).report.shared_bytes);
    }
  }
}

}  // namespace
}  // namespace attest::gpu
