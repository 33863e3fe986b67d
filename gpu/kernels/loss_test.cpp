#include <algorithm>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/kernels/loss_large.hpp"
#include "gpu/kernels/loss_small.hpp"
#include "gpu/testing/loss_call.hpp"
#include "gpu/testing/words.hpp"

namespace attest::gpu {
namespace {

using testing::MovedWords;

struct Form {
  const char* schedule;
  LossScores scores;
  simt::LaunchReport (*emulated)(const EmulatedLoss&, const simt::Emulation&);
  const attest_kernel& (*kernel)();
};

const std::vector<Form>& forms() {
  static const std::vector<Form> all{
      {"loss_large:b1=32,b2=32", LossScores::passing, loss_large_emulated, loss_large_kernel},
      {"loss_small:b=32", LossScores::stored, loss_small_emulated, loss_small_kernel}};
  return all;
}

struct Extents {
  std::int64_t n, d;
};

const std::vector<Extents>& extents() {
  static const std::vector<Extents> all{{1, 1}, {17, 33}, {32, 32}, {70, 5}, {3, 130}};
  return all;
}

attest_loss_args arguments(testing::LossCall& call, const Form& form) {
  return call.arguments(loss_workspace_bytes(*call.form.get(), form.scores));
}

MovedWords moved(const attest_loss_args& args, const Form& form) {
  const EmulatedLoss emulated(args, form.scores);
  return testing::moved_words(emulated.memory, form.emulated(emulated, {}));
}

TEST_CASE("loss gradient: no order of lanes and blocks changes a bit, and nothing is wrong in any",
          "[gpu][loss]") {
  for (const Form& form : forms()) {
    for (const Extents& at : extents()) {
      INFO(form.schedule << ", n " << at.n << ", d " << at.d);
      std::vector<std::vector<std::uint32_t>> outputs;
      for (const simt::Emulation& emulation : testing::checked_orders()) {
        testing::LossCall call(at.n, at.d);
        const EmulatedLoss emulated(arguments(call, form), form.scores);
        CHECK(form.emulated(emulated, emulation).to_string().empty());
        outputs.push_back(testing::bits_of({&call.dX, &call.dY}));
        CHECK(std::count(outputs.back().begin(), outputs.back().end(), ~std::uint32_t{0}) == 0);
      }
      for (const auto& bits : outputs) CHECK(bits == outputs.front());
    }
  }
}

TEST_CASE("loss gradient: words moved are those of the schedule", "[gpu][loss][words]") {
  for (const Form& form : forms()) {
    for (const Extents& at : extents()) {
      INFO(form.schedule << ", n " << at.n << ", d " << at.d);
      testing::LossCall call(at.n, at.d);
      attest_loss_args args = arguments(call, form);
      args.dY = nullptr;
      CHECK(moved(args, form) == testing::counted_words(form.schedule, call.problem));
    }
  }
}

// dY takes Z = f A3, which flash2 and the second half of square_tiled make, and Z^T c.
TEST_CASE("loss gradient: dY takes the words of Z and of a product", "[gpu][loss][words]") {
  for (const Extents& at : extents()) {
    INFO("n " << at.n << ", d " << at.d);
    const std::int64_t n = at.n, d = at.d, across = (n + 31) / 32;
    testing::LossCall call(n, d);
    const Form &large = forms()[0], &small = forms()[1];
    CHECK(moved(arguments(call, large), large) + MovedWords{0, n} ==
          testing::counted_words(large.schedule, call.problem) +
              testing::counted_words("flash2:bq=32,bk=32", call.problem) +
              MovedWords{2 * n * d, d * d});
    CHECK(moved(arguments(call, small), small) + MovedWords{2 * n * d * across, n * n + n} ==
          testing::counted_words(small.schedule, call.problem) +
              testing::counted_words("square_tiled:b=32", call.problem) +
              MovedWords{2 * n * d * ((d + 31) / 32), d * d});
  }
}

TEST_CASE("loss gradient: what is not claimed is refused and nothing written", "[gpu][loss]") {
  const auto refused = [](const Form& form, const Problem& problem, testing::LossCall& call) {
    const AbiProblem other(problem, 1);
    attest_loss_args args = arguments(call, form);
    args.problem = other.get();
    CHECK(form.kernel().loss_gradient(form.kernel().self, &args) == ATTEST_UNSUPPORTED);
    for (const std::uint32_t bits : testing::bits_of({&call.dX, &call.dY})) {
      CHECK(bits == ~std::uint32_t{0});
    }
  };
  for (const Form& form : forms()) {
    for (const char* text : {"sq=4,d=3,dtype=bf16", "b=2,sq=4,d=3", "hq=2,sq=4,d=3",
                             "sq=4,sk=5,d=3", "sq=4,d=3,dv=2"}) {
      INFO(form.schedule << " " << text);
      testing::LossCall call(4, 3);
      refused(form, Problem::parse(text), call);
    }
  }
  testing::LossCall wide(3, 209);
  refused(forms()[0], wide.problem, wide);
}

}  // namespace
}  // namespace attest::gpu
