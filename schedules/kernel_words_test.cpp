// The words of cpu/flash2 are those of the schedules that it names: its own code, counted, against
// their closed forms; its bits do not depend on whether it is counted.
#include <iterator>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "core/testing/kernel_call.hpp"
#include "cpu/kernels/flash2/flash2.hpp"
#include "cpu/kernels/kernel.hpp"
#include "schedules/register.hpp"

namespace attest::schedules {
namespace {

using attest::testing::Call;
using attest::testing::Dlse;
using attest::testing::Memory;

io::Traffic closed_form(const std::string& schedule, const Call& call, Dlse dlse) {
  const std::string text =
      schedule + (dlse == Dlse::given && schedule.rfind("flash2", 0) != 0 ? ",dlse=given" : "");
  return dense_schedules().make(text, *call.form.get(), io::FastMemory{})->closed_form();
}

struct Counted {
  MovedWords words;
  io::Traffic named;  // closed form of the schedule
};

// Counts forward; a call that is not counted must give the same bits.
Counted counted_forward(const Problem& problem, const attest_kernel& kernel = cpu::flash2_kernel(),
                        const CountedCode& code = cpu::flash2_counted()) {
  Call counted(problem, 1, {Memory::spelled, 1, 1, Dlse::absent});
  Call native(problem, 1, {Memory::scattered, 3, 1, Dlse::absent});
  MovedWords words;
  code.forward(counted.forward_arguments(kernel), &words);
  REQUIRE(native.forward(kernel) == ATTEST_OK);
  CHECK(counted.output_bits() == native.output_bits());
  return {words, closed_form(kernel.description.schedule, counted, Dlse::absent)};
}

// As the sizes of tiles, smaller, equal and larger, and with masks whose tiles are not all visited.
// Key lengths end with tiles: where they do not, the code reads fewer words, for it never reads the
// keys behind them.
constexpr const char* kProblems[] = {"sq=1,sk=1,d=1",
                                     "sq=192,sk=96,d=8",
                                     "sq=193,sk=97,d=5,dv=3",
                                     "sq=244,sk=192,d=7",  // a last panel of few queries
                                     "hq=2,sq=500,sk=450,d=16",
                                     "b=2,hq=2,sq=400,sk=300,d=8",
                                     "sq=480,sk=480,d=8,mask=causal_tl",
                                     "sq=300,sk=700,d=8,mask=causal_br",
                                     "sq=400,sk=400,d=4,mask=window_50_20",
                                     "b=2,sq=300,sk=400,d=4,mask=lengths_400_192"};

TEST_CASE("forward of cpu/flash2 moves the words of its schedule", "[cpu][schedules]") {
  const attest_kernel& kernel = cpu::flash2_kernel();
  std::vector<const char*> problems(std::begin(kProblems), std::end(kProblems));
  problems.push_back("hq=4,hkv=2,sq=200,sk=300,d=8");  // more queries of a group than a tile has
  for (const char* text : problems) {
    INFO(text);
    const auto [words, named] = counted_forward(Problem::parse(text));
    CHECK(words.reads == named.reads.words.value());
    CHECK(words.writes == named.writes.words.value());
  }
  // Tiles that are not those of the code have other words.
  Call call(Problem::parse("sq=500,sk=450,d=16"), 1, {});
  MovedWords words;
  cpu::flash2_forward(call.forward_arguments(kernel), &words);
  CHECK(words.reads != closed_form("flash2:bq=96,bk=96", call, Dlse::absent).reads.words.value());
}

TEST_CASE("products in pairs move the same words", "[cpu][schedules]") {
  for (const char* text : kProblems) {
    INFO(text);
    const auto [words, named] =
        counted_forward(Problem::parse(std::string(text) + ",dtype=bf16"),
                        cpu::flash2_bf16_kernel(), cpu::flash2_bf16_counted());
    CHECK(words.reads == named.reads.words.value());
    CHECK(words.writes == named.writes.words.value());
  }
}

// Forward reads K and V once for a group whose queries fit one block; the schedule for each head.
std::int64_t forward_saved(const Problem& p) {
  const std::int64_t others = p.num_heads_q - p.num_heads_kv;
  return p.batch * others * p.seqlen_k * (p.head_dim_qk + p.head_dim_v);
}

TEST_CASE("heads of a group in one block read K and V once", "[cpu][schedules]") {
  for (const char* text : {"hq=4,hkv=2,sq=90,sk=300,d=8", "hq=3,hkv=1,sq=64,sk=97,d=5,dv=3",
                           "b=2,hq=6,hkv=2,sq=50,sk=200,d=8,mask=causal_br"}) {
    INFO(text);
    const Problem problem = Problem::parse(text);
    const auto [words, named] = counted_forward(problem);
    CHECK(words.reads == named.reads.words.value() - forward_saved(problem));
    CHECK(words.writes == named.writes.words.value());
  }
}

TEST_CASE("few queries leave sums of their parts of the keys beside that", "[cpu][schedules]") {
  for (const char* text : {"sq=1,sk=3000,d=8", "hq=2,sq=16,sk=5000,d=8,dv=4,mask=causal_br",
                           "b=2,hq=4,hkv=2,sq=3,sk=3000,d=8", "hq=4,hkv=1,sq=16,sk=3000,d=8",
                           "hq=12,hkv=1,sq=16,sk=3000,d=8,mask=causal_br"}) {
    INFO(text);
    const Problem problem = Problem::parse(text);
    const auto [words, named] = counted_forward(problem);
    const std::int64_t splits = problem.seqlen_k > 4096 ? 8 : 6,
                       rows = problem.batch * problem.num_heads_q * problem.seqlen_q;
    const std::int64_t queries_again = (splits - 1) * rows * problem.head_dim_qk;
    const std::int64_t left = splits * rows * (problem.head_dim_v + 2);
    CHECK(words.reads == named.reads.words.value() - forward_saved(problem) + queries_again + left);
    CHECK(words.writes == named.writes.words.value() + left);
  }
}

TEST_CASE("backward of cpu/flash2 moves the words of its schedule", "[cpu][schedules]") {
  const attest_kernel& kernel = cpu::flash2_kernel();
  for (const char* text : kProblems) {
    for (const Dlse dlse : {Dlse::absent, Dlse::given}) {
      INFO(text);
      Call counted(Problem::parse(text), 1, {Memory::spelled, 1, 1, dlse});
      REQUIRE(counted.forward(kernel) == ATTEST_OK);
      MovedWords words;
      cpu::flash2_backward(counted.backward_arguments(kernel), &words);
      for (const std::int32_t threads : {1, 7}) {  // one pass, and two
        Call native(Problem::parse(text), 1, {Memory::scattered, threads, 1, dlse});
        REQUIRE(native.forward(kernel) == ATTEST_OK);
        REQUIRE(native.backward(kernel) == ATTEST_OK);
        CHECK(counted.output_bits() == native.output_bits());
      }
      const io::Traffic named = closed_form(kernel.description.schedule_backward, counted, dlse);
      CHECK(words.reads == named.reads.words.value());
      CHECK(words.writes == named.writes.words.value());
    }
  }
}

// The schedule reads K and V for each head of a group, and dK and dV of the heads before.
TEST_CASE("backward of a group reads K and V once", "[cpu][schedules]") {
  const attest_kernel& kernel = cpu::flash2_kernel();
  for (const char* text : {"hq=2,hkv=1,sq=192,sk=96,d=8", "b=2,hq=6,hkv=2,sq=193,sk=300,d=5,dv=3",
                           "hq=4,hkv=1,sq=200,sk=200,d=8,mask=causal_tl"}) {
    INFO(text);
    const Problem p = Problem::parse(text);
    Call counted(p, 1, {Memory::spelled, 1, 1, Dlse::absent});
    REQUIRE(counted.forward(kernel) == ATTEST_OK);
    MovedWords words;
    cpu::flash2_backward(counted.backward_arguments(kernel), &words);
    for (const std::int32_t threads : {1, 7}) {  // one pass, and two
      Call native(p, 1, {Memory::scattered, threads, 1, Dlse::absent});
      REQUIRE(native.forward(kernel) == ATTEST_OK);
      REQUIRE(native.backward(kernel) == ATTEST_OK);
      CHECK(counted.output_bits() == native.output_bits());
    }
    const io::Traffic named =
        closed_form(kernel.description.schedule_backward, counted, Dlse::absent);
    const std::int64_t saved =
        p.batch * (p.num_heads_q - p.num_heads_kv) * p.seqlen_k * (p.head_dim_qk + p.head_dim_v);
    CHECK(words.reads == named.reads.words.value() - 2 * saved);
    CHECK(words.writes == named.writes.words.value() - saved);
  }
}

// The schedule reads whole tiles; every query block ends its last tile at the length.
TEST_CASE("keys behind a length are not read", "[cpu][schedules]") {
  const attest_kernel& kernel = cpu::flash2_kernel();
  const Problem p = Problem::parse("b=2,sq=300,sk=400,d=4,mask=lengths_400_150");
  constexpr std::int64_t kTile = cpu::kBlockK, kLength = 150;
  const std::int64_t behind = (kTile - kLength % kTile) * (p.head_dim_qk + p.head_dim_v);
  Call call(p, 1, {Memory::spelled, 1, 1, Dlse::absent});
  MovedWords forward, backward;
  cpu::flash2_forward(call.forward_arguments(kernel), &forward);
  const std::int64_t blocks = (p.seqlen_q + cpu::kBlockQ - 1) / cpu::kBlockQ;
  CHECK(forward.reads ==
        closed_form(kernel.description.schedule, call, Dlse::absent).reads.words.value() -
            blocks * behind);
  cpu::flash2_backward(call.backward_arguments(kernel), &backward);
  // A block of keys that stays is read once.
  CHECK(backward.reads ==
        closed_form(kernel.description.schedule_backward, call, Dlse::absent).reads.words.value() -
            (cpu::kKeyBlock - kLength) * (p.head_dim_qk + p.head_dim_v));
}

}  // namespace
}  // namespace attest::schedules
