#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/launches.hpp"
#include "gpu/ptx/testing/texts.hpp"

/// Races of reads with writes are reported where the value that is read matters, and only there.
namespace attest::ptx {
namespace {

using simt::Fault;
using testing::Call;
using testing::faults;
using testing::kernel;
using testing::with;
using Faults = std::vector<Fault>;

// Threads hold copies of an element of x: all of them load it, those with %p1 store the result.
// %r0: the thread, %r1: its element, %a1: where that is, %a2: where y has a word for the thread.
struct InPlace {
  unsigned elements = 32, threads = 64;
  std::string use;  // between load and store, with %r3 for the loaded value and the result

  std::string text() const {
    return kernel(".param .u64 x, .param .u64 y",
                  ".shared .b32 s[64]; .reg .b64 %a<9>; .reg .b32 %r<9>; .reg .pred %p<9>;\n"
                  "mov.u32 %r0, %tid.x; and.b32 %r1, %r0, " +
                      std::to_string(elements - 1) +
                      ";\n"
                      "ld.param.u64 %a0, [x]; mad.wide.u32 %a1, %r1, 4, %a0;\n"
                      "ld.param.u64 %a2, [y]; mad.wide.u32 %a2, %r0, 4, %a2;\n"
                      "setp.lt.u32 %p1, %r0, " +
                      std::to_string(elements) +
                      ";\n"
                      "ld.global.u32 %r3, [%a1];\n" +
                      use + "\n@%p1 st.global.u32 [%a1], %r3; ret;");
  }
  simt::LaunchReport run(std::vector<std::uint32_t>& x, simt::Order order) const {
    std::vector<std::uint32_t> y(threads, 0);
    return Call(text()).buffer("x", x).buffer("y", y).run(1, threads, 0, order);
  }
  // In every order of warps.
  bool is_found() const {
    std::size_t found = 0;
    for (const simt::Order order : testing::kOrders) {
      std::vector<std::uint32_t> x(elements, 5);
      const auto report = run(x, order);
      INFO(report.to_string());
      CHECK((report.clean() || faults(report) == Faults{Fault::race}));
      found += report.clean() ? 0 : 1;
    }
    CHECK((found == 0 || found == std::size(testing::kOrders)));
    return found != 0;
  }
};

TEST_CASE("an element is updated in place by one of the threads that load it", "[ptx]") {
  for (const unsigned elements : {16U, 32U, 64U}) {
    for (const simt::Order order : testing::kOrders) {
      std::vector<std::uint32_t> x(elements);
      for (std::uint32_t k = 0; k < elements; ++k) x[k] = k;
      const InPlace kernel{elements, 128, "mad.lo.u32 %r3, %r3, 3, 1;"};
      CHECK(kernel.run(x, order).to_string() == "");
      for (std::uint32_t k = 0; k < elements; ++k) CHECK(x[k] == 3 * k + 1);
    }
  }
}

TEST_CASE("late values that go unused are no race", "[ptx]") {
  for (const char* use : {
           "", "setp.gt.u32 %p2, %r3, 4; selp.u32 %r3, 1, 2, %p2;",
           "mov.u32 %r4, 0; setp.gt.u32 %p2, %r3, 4; @%p2 mov.u32 %r4, 7; mov.u32 %r3, %r4;",
           "cvt.rn.f32.u32 %r4, %r3; ex2.approx.f32 %r4, %r4; cvt.rzi.u32.f32 %r3, %r4;",
           "mov.u32 %r3, %r1; @!%p1 st.global.u32 [%a2], %r3;",  // overwritten before it is used
       }) {
    INFO(use);
    CHECK_FALSE(InPlace{32, 64, use}.is_found());
  }
  // Copies within a warp, which exchange values with their like.
  const char* sum = "shfl.sync.bfly.b32 %r4, %r3, 8, 31, -1; add.u32 %r3, %r3, %r4;";
  CHECK_FALSE(InPlace{16, 32, sum}.is_found());
  CHECK_FALSE(InPlace{16, 64, sum}.is_found());
}

TEST_CASE("late values that are used are races", "[ptx]") {
  for (const char* use : {
           "@!%p1 st.global.u32 [%a2], %r3;",                             // stored
           "mad.lo.u32 %r4, %r3, 3, 1; @!%p1 st.global.u32 [%a2], %r4;",  // computed
           "setp.gt.u32 %p2, %r3, 4; @%p2 st.global.u32 [%a2], %r0;",     // chooses
           "setp.gt.u32 %p2, %r3, 99; @%p2 st.global.u32 [%a2], %r0;",    // or not
           "setp.gt.u32 %p2, %r3, 4; selp.u32 %r4, 1, 2, %p2; st.global.u32 [%a2], %r4;",
           "setp.eq.u32 %p2, %r3, 77; @%p2 bra END; st.global.u32 [%a2], %r0; END:",  // branches
           "and.b32 %r4, %r3, 0; mad.wide.u32 %a3, %r4, 4, %a2; ld.global.u32 %r5, [%a3];",
           "mad.wide.u32 %a3, %r0, 4, s; st.shared.u32 [%a3], %r3;",  // shared
           "atom.global.add.u32 %r4, [%a2], %r3;",
           "add.cc.u32 %r4, %r3, 1;",  // a carry
       }) {
    INFO(use);
    CHECK(InPlace{32, 64, use}.is_found());
  }
  const char* sum = "shfl.sync.bfly.b32 %r4, %r3, 16, 31, -1; add.u32 %r3, %r3, %r4;";
  CHECK(InPlace{16, 32, sum}.is_found());
  CHECK(InPlace{16, 32, "redux.sync.add.u32 %r3, %r3, -1;"}.is_found());
}

// Two blocks: what one writes, the other reads.
TEST_CASE("late reads of other blocks", "[ptx]") {
  const std::string text =
      kernel(".param .u64 x, .param .u64 y",
             ".reg .b64 %a<9>; .reg .b32 %r<9>; .reg .pred %p<9>;\n"
             "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0;\n"
             "ld.param.u64 %a0, [x]; mad.wide.u32 %a0, %r0, 4, %a0;\n"
             "ld.param.u64 %a1, [y]; mad.wide.u32 %a1, %r0, 4, %a1;\n"
             "ld.global.u32 %r2, [%a0]; add.u32 %r2, %r2, 1;\n"
             "@%p1 st.global.u32 [%a0], %r2;\nUSE ret;");
  for (const simt::Order order : testing::kOrders) {
    const auto report = [&](const char* use) {
      std::vector<std::uint32_t> x(32, 5), y(32, 0);
      auto found = Call(with(text, "USE", use)).buffer("x", x).buffer("y", y).run(2, 32, 0, order);
      CHECK(x[9] == 6);
      return found;
    };
    CHECK(report("").to_string() == "");
    CHECK(faults(report("@!%p1 st.global.u32 [%a1], %r2;")) == Faults{Fault::race});
  }
}

}  // namespace
}  // namespace attest::ptx
