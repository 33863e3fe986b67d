#include <algorithm>
#include <bit>
#include <optional>

#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/launches.hpp"
#include "gpu/ptx/testing/texts.hpp"

/// Shuffles, votes, matches and reductions of a warp against PTX ISA's words.
namespace attest::ptx {
namespace {

using testing::Call;
using testing::kernel;
using Words = std::vector<std::uint32_t>;

constexpr std::uint32_t kLanes = 32;

Words random_words(std::uint64_t seed, std::uint32_t below) {
  Words words(kLanes);
  for (std::uint32_t k = 0; k < kLanes; ++k) {
    words[k] = static_cast<std::uint32_t>(mix(seed, k) % below);
  }
  return words;
}

// Results of lanes: %r0 and %p0 of a statement that has the lane's values in %r1 and %r2, and
// executes only in the lanes of `active`.
struct Results {
  Words values, predicates;
};
Results run(const std::string& statement, const Words& a, const Words& b,
            std::uint32_t active = ~0U) {
  Results results{Words(kLanes, 77), Words(kLanes, 77)};
  Call call(
      kernel(".param .u64 a, .param .u64 b, .param .u64 values, .param .u64 predicates, .param "
             ".u32 active",
             ".reg .b64 %a<5>; .reg .b32 %r<9>; .reg .pred %p<3>;\n"
             "mov.u32 %r3, %tid.x; mul.wide.u32 %a0, %r3, 4;\n"
             "ld.param.u64 %a1, [a]; add.u64 %a1, %a1, %a0; ld.global.u32 %r1, [%a1];\n"
             "ld.param.u64 %a2, [b]; add.u64 %a2, %a2, %a0; ld.global.u32 %r2, [%a2];\n"
             "ld.param.u64 %a3, [values]; add.u64 %a3, %a3, %a0;\n"
             "ld.param.u64 %a4, [predicates]; add.u64 %a4, %a4, %a0;\n"
             "ld.param.u32 %r4, [active]; shr.u32 %r5, %r4, %r3; and.b32 %r5, %r5, 1;\n"
             "setp.eq.u32 %p1, %r5, 0; @%p1 ret;\n"
             "mov.u32 %r0, 55; setp.ne.u32 %p0, %r0, 55; setp.ne.u32 %p2, %r1, 0;\n" +
                 statement +
                 "\nst.global.u32 [%a3], %r0; selp.u32 %r6, 1, 0, %p0;\n"
                 "st.global.u32 [%a4], %r6; ret;"));
  call.input("a", a).input("b", b).buffer("values", results.values);
  call.buffer("predicates", results.predicates).value(active);
  CHECK(call.run(1, kLanes).to_string() == "");
  return results;
}

// PTX ISA, shfl.sync.
std::optional<std::uint32_t> source(const std::string& mode, std::uint32_t lane, std::uint32_t b,
                                    std::uint32_t c) {
  const std::uint32_t segment = c >> 8 & 0x1F, clamp = c & 0x1F, by = b & 0x1F;
  const std::uint32_t most = (lane & segment) | (clamp & ~segment);
  const std::int64_t from = mode == "up"     ? std::int64_t{lane} - by
                            : mode == "down" ? std::int64_t{lane} + by
                            : mode == "bfly" ? std::int64_t{lane ^ by}
                                             : std::int64_t{(lane & segment) | (by & ~segment)};
  const bool is_valid = mode == "up" ? from >= most : from <= most;
  if (!is_valid) return std::nullopt;
  return static_cast<std::uint32_t>(from);
}

TEST_CASE("shuffles of whole warps and of their parts", "[ptx]") {
  const Words a = random_words(1, 1000);
  for (const std::string mode : {"up", "down", "bfly", "idx"}) {
    for (const std::uint32_t width : {32U, 16U, 8U, 4U, 1U}) {
      const std::uint32_t c = (32 - width) << 8 | (mode == "up" ? 0 : 31);
      for (const Words& b : {random_words(2, 40), Words(kLanes, 1), Words(kLanes, 16)}) {
        const Results results = run(
            "shfl.sync." + mode + ".b32 %r0|%p0, %r1, %r2, " + std::to_string(c) + ", -1;", a, b);
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
          const auto from = source(mode, lane, b[lane], c);
          INFO(mode << " " << width << " lane " << lane);
          CHECK(results.values[lane] == a[from.value_or(lane)]);
          CHECK(results.predicates[lane] == (from ? 1U : 0U));
        }
      }
    }
  }
}

TEST_CASE("votes, matches, reductions and elections of some lanes", "[ptx]") {
  for (const std::uint32_t active : {~0U, 0x0000FFF0U, 0x80000001U}) {
    for (const std::uint32_t below : {1U, 2U, 5U}) {
      const Words a = random_words(below, below);
      const std::string mask = ", " + std::to_string(static_cast<std::int32_t>(active)) + ";";
      std::uint32_t ballot = 0, sum = 0, least = ~0U, most = 0, all_bits = ~0U, any_bits = 0,
                    odd = 0;
      bool is_uniform = true;
      const auto first = static_cast<std::uint32_t>(std::countr_zero(active));
      for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        if ((active >> lane & 1U) == 0) continue;
        ballot |= (a[lane] != 0 ? 1U : 0U) << lane;
        is_uniform = is_uniform && a[lane] == a[first];
        sum += a[lane];
        least = std::min(least, a[lane]);
        most = std::max(most, a[lane]);
        all_bits &= a[lane];
        any_bits |= a[lane];
        odd ^= a[lane];
      }
      const auto holds = [&](const std::string& statement, std::uint32_t value, bool predicate) {
        const Results results = run(statement + mask, a, a, active);
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
          const bool takes_part = (active >> lane & 1U) != 0;
          INFO(statement << " of " << std::hex << active << ", lane " << std::dec << lane);
          CHECK(results.values[lane] == (takes_part ? value : 77));
          CHECK(results.predicates[lane] == (takes_part ? (predicate ? 1U : 0U) : 77U));
        }
      };
      holds("vote.sync.ballot.b32 %r0, %p2", ballot, false);
      holds("vote.sync.all.pred %p0, %p2", 55, ballot == active);
      holds("vote.sync.any.pred %p0, %p2", 55, ballot != 0);
      holds("vote.sync.uni.pred %p0, %p2", 55, ballot == 0 || ballot == active);
      holds("vote.sync.all.pred %p0, !%p2", 55, ballot == 0);
      holds("match.all.sync.b32 %r0|%p0, %r1", is_uniform ? active : 0, is_uniform);
      holds("redux.sync.add.u32 %r0, %r1", sum, false);
      holds("redux.sync.min.u32 %r0, %r1", least, false);
      holds("redux.sync.max.s32 %r0, %r1", most, false);
      holds("redux.sync.and.b32 %r0, %r1", all_bits, false);
      holds("redux.sync.or.b32 %r0, %r1", any_bits, false);
      holds("redux.sync.xor.b32 %r0, %r1", odd, false);
      const Results elected = run("elect.sync %r0|%p0" + mask, a, a, active);
      const Results matched = run("match.any.sync.b32 %r0, %r1" + mask, a, a, active);
      const Results there = run("activemask.b32 %r0;", a, a, active);
      for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        if ((active >> lane & 1U) == 0) continue;
        std::uint32_t equal = 0;
        for (std::uint32_t other = 0; other < kLanes; ++other) {
          if ((active >> other & 1U) != 0 && a[other] == a[lane]) equal |= 1U << other;
        }
        CHECK(matched.values[lane] == equal);
        CHECK(there.values[lane] == active);
        CHECK(elected.values[lane] == first);
        CHECK(elected.predicates[lane] == (lane == first ? 1U : 0U));
      }
    }
  }
}

TEST_CASE("barriers with a reduction", "[ptx]") {
  Words out(3 * 64, 0);
  Call call(kernel(".param .u64 out",
                   ".reg .b64 %a<3>; .reg .b32 %r<6>; .reg .pred %p<4>;\n"
                   "mov.u32 %r0, %tid.x; mul.wide.u32 %a0, %r0, 4; ld.param.u64 %a1, [out];\n"
                   "add.u64 %a1, %a1, %a0; setp.lt.u32 %p0, %r0, 40;\n"
                   "bar.red.popc.u32 %r1, 0, %p0; st.global.u32 [%a1], %r1;\n"
                   "bar.red.and.pred %p1, 0, %p0; selp.u32 %r2, 1, 0, %p1;\n"
                   "bar.red.or.pred %p2, 1, 64, !%p0; selp.u32 %r3, 2, 0, %p2;\n"
                   "st.global.u32 [%a1+256], %r2; st.global.u32 [%a1+512], %r3; ret;"));
  CHECK(call.buffer("out", out).run(1, 64).to_string() == "");
  for (std::size_t k = 0; k < 64; ++k) {
    CHECK(out[k] == 40);
    CHECK(out[64 + k] == 0);
    CHECK(out[128 + k] == 2);
  }
}

TEST_CASE("special registers", "[ptx]") {
  const std::vector<std::pair<const char*, std::uint32_t (*)(std::uint32_t)>> registers{
      {"%laneid", [](std::uint32_t lane) { return lane; }},
      {"%warpid", [](std::uint32_t) { return 0U; }},
      {"%lanemask_eq", [](std::uint32_t lane) { return 1U << lane; }},
      {"%lanemask_lt", [](std::uint32_t lane) { return (1U << lane) - 1; }},
      {"%lanemask_le",
       [](std::uint32_t lane) { return lane == 31 ? ~0U : (1U << (lane + 1)) - 1; }},
      {"%lanemask_gt", [](std::uint32_t lane) { return lane == 31 ? 0U : ~0U << (lane + 1); }},
      {"%lanemask_ge", [](std::uint32_t lane) { return ~0U << lane; }},
      {"%tid.x", [](std::uint32_t lane) { return lane; }},
      {"%tid.y", [](std::uint32_t) { return 0U; }},
      {"%ntid.x", [](std::uint32_t) { return 32U; }},
      {"%ntid.z", [](std::uint32_t) { return 1U; }},
      {"%ctaid.x", [](std::uint32_t) { return 0U; }},
      {"%nctaid.x", [](std::uint32_t) { return 1U; }},
      {"%nwarpid", [](std::uint32_t) { return 1U; }},
      {"%total_smem_size", [](std::uint32_t) { return 0U; }}};
  for (const auto& [name, value] : registers) {
    const Results results =
        run(std::string("mov.u32 %r0, ") + name + ";", Words(kLanes), Words(kLanes));
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      INFO(name << " of lane " << lane);
      CHECK(results.values[lane] == value(lane));
    }
  }
}

}  // namespace
}  // namespace attest::ptx
