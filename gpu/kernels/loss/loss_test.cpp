#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/kernels/loss/loss_large.hpp"
#include "gpu/kernels/loss/loss_small.hpp"
#include "gpu/testing/call.hpp"
#include "gpu/testing/words.hpp"

namespace attest::gpu {
namespace {

const std::vector<const EmulatedKernel*>& kernels() {
  static const std::vector<const EmulatedKernel*> all{&loss_large_kernel(), &loss_small_kernel()};
  return all;
}

struct Extents {
  std::int64_t n, d;
};

const std::vector<Extents>& extents() {
  static const std::vector<Extents> all{{1, 1}, {17, 33}, {32, 32}, {70, 5}, {3, 130}};
  return all;
}

MovedWords moved(const attest_loss_args& args, const EmulatedKernel& kernel) {
  EmulatedLoss emulated(args);
  const simt::LaunchReport report = kernel.directions().loss_gradient.run(emulated, {});
  return testing::moved_words(emulated.memory, report);
}

TEST_CASE("loss gradient: no order of lanes and blocks changes a bit, and nothing is wrong in any",
          "[gpu][loss]") {
  for (const EmulatedKernel* kernel : kernels()) {
    for (const Extents& at : extents()) {
      INFO(kernel->description().schedule << ", n " << at.n << ", d " << at.d);
      std::vector<std::vector<std::uint64_t>> outputs;
      for (const simt::Emulation& emulation : testing::checked_orders()) {
        testing::LossCall call(testing::loss_problem(at.n, at.d));
        EmulatedLoss emulated(call.arguments(kernel->abi()));
        CHECK(kernel->directions().loss_gradient.run(emulated, emulation).to_string().empty());
        outputs.push_back(testing::bits_of({&call.dX, &call.dY}));
        CHECK(testing::unwritten(outputs.back()) == 0);
        CHECK(call.gaps_intact());
      }
      for (const auto& bits : outputs) CHECK(bits == outputs.front());
    }
  }
}

TEST_CASE("loss gradient: words moved are those of the schedule", "[gpu][loss][words]") {
  for (const EmulatedKernel* kernel : kernels()) {
    for (const Extents& at : extents()) {
      INFO(kernel->description().schedule << ", n " << at.n << ", d " << at.d);
      testing::LossCall call(testing::loss_problem(at.n, at.d));
      attest_loss_args args = call.arguments(kernel->abi());
      args.dY = nullptr;
      CHECK(moved(args, *kernel) ==
            testing::counted_words(kernel->description().schedule, call.problem));
    }
  }
}

// dY takes Z = f A3, which flash2 and the second half of square_tiled make, and Z^T c.
TEST_CASE("loss gradient: dY takes the words of Z and of a product", "[gpu][loss][words]") {
  for (const Extents& at : extents()) {
    INFO("n " << at.n << ", d " << at.d);
    const std::int64_t n = at.n, d = at.d, across = (n + 31) / 32;
    testing::LossCall call(testing::loss_problem(n, d));
    const EmulatedKernel &large = loss_large_kernel(), &small = loss_small_kernel();
    CHECK(moved(call.arguments(large.abi()), large) + MovedWords{0, n} ==
          testing::counted_words(large.description().schedule, call.problem) +
              testing::counted_words("flash2:bq=32,bk=32", call.problem) +
              MovedWords{2 * n * d, d * d});
    CHECK(moved(call.arguments(small.abi()), small) + MovedWords{2 * n * d * across, n * n + n} ==
          testing::counted_words(small.description().schedule, call.problem) +
              testing::counted_words("square_tiled:b=32", call.problem) +
              MovedWords{2 * n * d * ((d + 31) / 32), d * d});
  }
}

TEST_CASE("loss gradient: what is not claimed is refused and nothing written", "[gpu][loss]") {
  for (const EmulatedKernel* kernel : kernels()) {
    for (const char* text : {"sq=4,d=3,dtype=bf16", "b=2,sq=4,d=3", "hq=2,sq=4,d=3",
                             "sq=4,sk=5,d=3", "sq=4,d=3,dv=2"}) {
      INFO(kernel->description().schedule << " " << text);
      testing::LossCall call(Problem::parse(text));
      CHECK(call.run(kernel->abi()) == ATTEST_UNSUPPORTED);
      CHECK(call.dX.untouched());
      CHECK(call.dY.untouched());
    }
  }
}

TEST_CASE("loss gradient: the description tells the largest head dimension", "[gpu][loss]") {
  const attest_kernel& kernel = loss_large_kernel().abi();
  const auto run = [&](std::int64_t head_dim) {
    return testing::LossCall(testing::loss_problem(3, head_dim)).run(kernel);
  };
  CHECK(run(kernel.description.max_head_dim) == ATTEST_OK);
  CHECK(run(kernel.description.max_head_dim + 1) == ATTEST_UNSUPPORTED);
  CHECK(loss_small_kernel().description().max_head_dim == 0);
}

}  // namespace
}  // namespace attest::gpu
