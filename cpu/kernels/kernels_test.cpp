// Every kernel of this room against the definition, written out in cpu/testing/naive.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "cpu/kernels/kernel.hpp"
#include "cpu/testing/judged_call.hpp"

namespace attest::cpu {
namespace {

using attest::testing::Call;
using attest::testing::Dlse;
using attest::testing::for_each_element;
using attest::testing::Memory;
using attest::testing::StoredTensor;
using testing::judge;
using testing::Ratios;
using testing::run_both;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const std::vector<const attest_kernel*>& kernels() {
  static const std::vector<const attest_kernel*> list{&standard_kernel(), &flash2_kernel()};
  return list;
}

// Sizes around the tiles' edges (128 queries, 64 keys), and each feature alone and with others.
const std::vector<std::string>& problems() {
  static const std::vector<std::string> list{
      "sq=1,d=1",
      "sq=5,sk=7,d=4",
      "b=2,hq=3,sq=9,sk=4,d=33,dv=5",
      "sq=128,sk=64,d=8",
      "sq=129,sk=65,d=3,dv=40",
      "sq=127,sk=63,d=17",
      "sq=3,sk=200,d=5",
      "sq=260,sk=2,d=4",
      "hq=6,hkv=2,sq=5,sk=9,d=8",
      "b=2,hq=4,hkv=1,sq=70,sk=66,d=4",
      "sq=7,sk=9,d=8,scale=0",
      "sq=7,sk=9,d=8,scale=-0.5",
      "sq=7,sk=9,d=8,softcap=2",
      "hq=4,sq=7,sk=9,d=8,alibi=standard",
      "hq=4,hkv=2,sq=7,sk=90,d=8,softcap=1.5,alibi=standard,mask=causal_br",
      "sq=9,sk=9,d=4,mask=causal_tl",
      "sq=5,sk=9,d=4,mask=causal_tl",
      "sq=9,sk=5,d=4,mask=causal_tl",
      "sq=5,sk=9,d=4,mask=causal_br",
      "sq=9,sk=5,d=4,mask=causal_br",
      "sq=200,sk=150,d=4,mask=causal_br",
      "sq=150,sk=200,d=4,mask=causal_tl",
      "sq=150,sk=150,d=4,mask=window_3_2",
      "sq=150,sk=200,d=4,mask=window_70_0",
      "sq=150,sk=100,d=4,mask=window_tl_0_60",
      "sq=20,sk=30,d=4,mask=window_inf_3",
      "sq=20,sk=30,d=4,mask=window_tl_4_inf",
      "b=3,sq=6,sk=80,d=4,mask=lengths_80_0_65",
      "b=2,hq=2,hkv=1,sq=70,sk=70,d=4,mask=causal_br+lengths_3_66",
      "b=2,sq=9,sk=70,d=4,mask=window_5_1+lengths_64_1,alibi=standard",
      "hq=2,hkv=1,d=4,mask=cu_3x5_0x7_70x66_4x0",
      "hq=2,d=4,mask=causal_br+cu_3x5_0x7_70x66_9x2",
      "d=4,mask=window_tl_2_2+cu_130x70_1x1,alibi=standard",
      "b=2,sq=70,sk=66,d=4,mask=random_30_7",
      "sq=9,sk=9,d=4,mask=random_10_3",
      "b=2,sq=40,sk=66,d=4,mask=causal_br+lengths_66_20+random_50_7,softcap=3",
      "sq=3,sk=1300,d=5",
      "hq=9,hkv=1,sq=16,sk=1300,d=3,mask=causal_br",
      "b=2,hq=6,hkv=2,sq=4,sk=1250,d=4,mask=causal_br+lengths_1250_700",
      "hq=4,hkv=2,sq=2,sk=600,d=3,dv=20,mask=window_200_0,alibi=standard",
      "d=4,mask=causal_br+cu_1x1200_2x3_0x9_100x700",
      "sq=0,sk=4,d=2",
      "sq=4,sk=0,d=2"};
  return list;
}

std::vector<Problem> parsed(const std::string& dtype) {
  std::vector<Problem> list;
  for (const std::string& text : problems()) {
    list.push_back(Problem::parse(text + ",dtype=" + dtype));
  }
  return list;
}

TEST_CASE("kernels compute their definition", "[cpu]") {
  for (const attest_kernel* kernel : kernels()) {
    for (const std::string dtype : {"f32", "bf16", "f16"}) {
      Ratios worst;
      std::uint64_t seed = 0;
      for (const Problem& problem : parsed(dtype)) {
        for (const Memory memory : {Memory::spelled, Memory::scattered}) {
          ++seed;
          INFO(kernel->description.name << " " << problem.to_string() << " seed " << seed);
          const Dlse dlse = seed % 4 < 2 ? Dlse::given : Dlse::absent;
          const std::int32_t threads = 1 + static_cast<std::int32_t>(seed % 3);
          Call call(problem, seed, {memory, threads, 1, dlse});
          run_both(call, *kernel);
          const Ratios ratios = judge(call);
          CHECK(ratios.O <= 1);
          CHECK(ratios.LSE <= 1);
          CHECK(ratios.dQ <= 1);
          CHECK(ratios.dK <= 1);
          CHECK(ratios.dV <= 1);
          worst.include(ratios);
        }
      }
      CHECK(worst.worst() > 0);  // something was computed
      std::printf("%s %s: worst error / bound: O %.2f LSE %.2f dQ %.2f dK %.2f dV %.2f\n",
                  kernel->description.name, dtype.c_str(), worst.O, worst.LSE, worst.dQ, worst.dK,
                  worst.dV);
    }
  }
}

// LSE and the gradients, from the O that was written, keep the bounds of products of numbers. O is
// off by the unit roundoff of bf16 for the cast of P, and for what is stored in each call.
TEST_CASE("products in pairs give the results of products of numbers but for the cast of P",
          "[cpu]") {
  constexpr double kRoundoff = unit_roundoff(DType::bf16);
  std::int64_t differ = 0;
  double worst = 0;
  std::uint64_t seed = 100;
  for (const Problem& problem : parsed("bf16")) {
    for (const Memory memory : {Memory::spelled, Memory::scattered}) {
      ++seed;
      INFO(problem.to_string() << " seed " << seed);
      const std::int32_t threads = 1 + static_cast<std::int32_t>(seed % 3);
      Call numbers(problem, seed, {memory, threads, 1, Dlse::given});
      Call pairs(problem, seed, {memory, threads, 1, Dlse::given});
      run_both(numbers, flash2_kernel());
      run_both(pairs, flash2_bf16_kernel());
      const Ratios ratios = judge(pairs);
      CHECK(ratios.LSE <= 1);
      CHECK(ratios.dQ <= 1);
      CHECK(ratios.dK <= 1);
      CHECK(ratios.dV <= 1);
      double largest = 0;
      for_each_element(numbers.V.view(), [&](auto... at) {
        largest = std::max(largest, std::abs(numbers.V.view()(at...)));
      });
      for_each_element(numbers.O.view(), [&](auto... at) {
        const double difference = std::abs(pairs.O.view()(at...) - numbers.O.view()(at...));
        differ += difference > 0 ? 1 : 0;
        worst = std::max(worst, difference / (3 * kRoundoff * largest));
        CHECK(difference <= 3 * kRoundoff * largest);
      });
    }
  }
  CHECK(differ > 0);
  std::printf("O of pairs beside numbers: worst difference / bound %.2f\n", worst);
  Call call(Problem::parse("sq=5,d=4,dtype=f16"), 1, {});
  CHECK(call.forward(flash2_bf16_kernel()) == ATTEST_UNSUPPORTED);
  CHECK(call.backward(flash2_bf16_kernel()) == ATTEST_UNSUPPORTED);
}

TEST_CASE("logits of any size", "[cpu]") {
  for (const attest_kernel* kernel : kernels()) {
    // Scores reach 10^2, 10^4 and 10^6; far below any finite stand-in for minus infinity.
    for (const double size : {5.0, 50.0, 500.0}) {
      for (const char* text : {"sq=70,sk=130,d=8,mask=causal_br", "sq=9,sk=70,d=8,scale=-1",
                               "b=2,sq=9,sk=70,d=8,mask=lengths_70_3"}) {
        INFO(kernel->description.name << " " << text << " size " << size);
        Call call(Problem::parse(text), 3, {Memory::spelled, 1, size, Dlse::given});
        run_both(call, *kernel);
        CHECK(judge(call).worst() <= 1);
      }
    }
  }
}

TEST_CASE("rows without a visible key are zero and give no gradient", "[cpu]") {
  // Row 3 and on have no key within the window; batch entry 1 has no keys at all.
  const Problem problem =
      Problem::parse("b=2,hq=2,hkv=1,sq=6,sk=3,d=2,mask=window_tl_0_0+lengths_3_0");
  for (const attest_kernel* kernel : kernels()) {
    INFO(kernel->description.name);
    Call call(problem, 5, {});
    run_both(call, *kernel);
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t head = 0; head < 2; ++head) {
        for (std::int64_t i = b == 0 ? 3 : 0; i < 6; ++i) {
          CHECK(call.LSE.view()(b, head, i) == -kInfinity);
          for (std::int64_t c = 0; c < 2; ++c) {
            CHECK(call.O.view()(b, i, head, c) == 0);
            CHECK(call.dQ.view()(b, i, head, c) == 0);
          }
        }
      }
    }
    for (std::int64_t j = 0; j < 3; ++j) {
      for (std::int64_t c = 0; c < 2; ++c) {
        CHECK(call.dK.view()(1, j, 0, c) == 0);
        CHECK(call.dV.view()(1, j, 0, c) == 0);
      }
    }
  }
}

TEST_CASE("the number of threads and the memory layout change no bit", "[cpu]") {
  const Problem problem = Problem::parse("b=2,hq=4,hkv=2,sq=140,sk=150,d=8,mask=causal_br");
  for (const attest_kernel* kernel : kernels()) {
    Call first(problem, 7, {});
    run_both(first, *kernel);
    for (const Memory memory : {Memory::spelled, Memory::scattered}) {
      for (const std::int32_t threads : {1, 2, 3, 5}) {
        INFO(kernel->description.name << " threads " << threads);
        Call other(problem, 7, {memory, threads, 1, Dlse::given});
        run_both(other, *kernel);
        CHECK(first.output_bits() == other.output_bits());
      }
    }
  }
}

// Few queries lie in no lanes of vectors, more do; the parts of the keys are the same.
TEST_CASE("queries have the same bits in small and in large blocks", "[cpu]") {
  Call many(Problem::parse("sq=20,sk=700,d=21,dv=35"), 3, {});
  REQUIRE(many.forward(flash2_kernel()) == ATTEST_OK);
  for (const std::int64_t count : {1, 3, 8, 9, 16, 17}) {
    const std::int64_t first = 20 - count;
    Call some(Problem::parse("sq=" + std::to_string(count) + ",sk=700,d=21,dv=35"), 3, {});
    for (std::int64_t j = 0; j < 700; ++j) {
      for (std::int64_t c = 0; c < 35; ++c) some.V.view().set(many.V(0, j, 0, c), 0, j, 0, c);
      for (std::int64_t c = 0; c < 21; ++c) {
        some.K.view().set(many.K(0, j, 0, c), 0, j, 0, c);
        if (j < count) some.Q.view().set(many.Q(0, first + j, 0, c), 0, j, 0, c);
      }
    }
    REQUIRE(some.forward(flash2_kernel()) == ATTEST_OK);
    for (std::int64_t i = 0; i < count; ++i) {
      INFO(count << " queries, query " << i);
      CHECK(some.LSE.view()(0, 0, i) == many.LSE.view()(0, 0, first + i));
      for (std::int64_t c = 0; c < 35; ++c) CHECK(some.O(0, i, 0, c) == many.O(0, first + i, 0, c));
    }
  }
}

TEST_CASE("what is not claimed is refused and nothing written", "[cpu]") {
  for (const attest_kernel* kernel : kernels()) {
    CHECK((kernel->description.dtypes & (1u << ATTEST_F64)) == 0);
    Call call(Problem::parse("sq=5,d=4,dtype=f64"), 1, {});
    CHECK(call.forward(*kernel) == ATTEST_UNSUPPORTED);
    CHECK(call.backward(*kernel) == ATTEST_UNSUPPORTED);
    for (const StoredTensor* output : {&call.O, &call.LSE, &call.dQ, &call.dK, &call.dV}) {
      CHECK(output->untouched());
    }
  }
}

TEST_CASE("keys that do not exist are never read", "[cpu]") {
  for (const attest_kernel* kernel : kernels()) {
    INFO(kernel->description.name);
    const Problem problem = Problem::parse("b=2,hq=2,hkv=1,sq=9,sk=70,d=4,mask=lengths_66_5");
    Call clean(problem, 9, {}), poisoned(problem, 9, {});
    for (const StoredTensor* input : {&poisoned.K, &poisoned.V}) {
      for (std::int64_t b = 0; b < 2; ++b) {
        for (std::int64_t j = b == 0 ? 66 : 5; j < 70; ++j) {
          for (std::int64_t c = 0; c < 4; ++c) {
            input->view().set(std::numeric_limits<double>::quiet_NaN(), b, j, 0, c);
          }
        }
      }
    }
    run_both(clean, *kernel);
    run_both(poisoned, *kernel);
    CHECK(clean.output_bits() == poisoned.output_bits());
  }
}

TEST_CASE("a row of NaN does not pass for an empty row", "[cpu]") {
  for (const attest_kernel* kernel : kernels()) {
    INFO(kernel->description.name);
    Call call(Problem::parse("sq=2,sk=70,d=4"), 11, {});
    call.Q.view().set(std::numeric_limits<double>::quiet_NaN(), 0, 1, 0, 2);
    REQUIRE(call.forward(*kernel) == ATTEST_OK);
    CHECK(std::isfinite(call.O.view()(0, 0, 0, 0)));
    CHECK(std::isnan(call.O.view()(0, 1, 0, 0)));
    CHECK(std::isnan(call.LSE.view()(0, 0, 1)));
  }
}

// A head that the bias shows the key has NaN; one that it hides it from keeps its bits.
TEST_CASE("NaN in V reaches the heads to which the bias shows its key, no other", "[cpu]") {
  const Problem problem = Problem::parse("hq=4,hkv=1,sq=3,sk=70,d=4,bias=hk_holes_3");
  Call before(problem, 13, {}), after(problem, 13, {});
  constexpr std::int64_t kKey = 66;
  after.V.view().set(std::numeric_limits<double>::quiet_NaN(), 0, kKey, 0, 1);
  REQUIRE(before.forward(flash2_kernel()) == ATTEST_OK);
  REQUIRE(after.forward(flash2_kernel()) == ATTEST_OK);
  std::int64_t hidden = 0;
  for (std::int64_t head = 0; head < problem.num_heads_q; ++head) {
    const bool hides = std::isinf(problem.bias_at(0, head, 0, kKey));
    hidden += hides ? 1 : 0;
    for (std::int64_t i = 0; i < problem.seqlen_q; ++i) {
      if (std::isinf(before.LSE.view()(0, head, i))) continue;
      INFO("head " << head << " row " << i);
      CHECK(std::isnan(after.O(0, i, head, 1)) == !hides);
      if (hides) CHECK(after.O(0, i, head, 1) == before.O(0, i, head, 1));
      CHECK(after.O(0, i, head, 0) == before.O(0, i, head, 0));
    }
  }
  CHECK(hidden > 0);
  CHECK(hidden < problem.num_heads_q);
}

TEST_CASE("NaN in K reaches no row from which the bias hides its key", "[cpu]") {
  const Problem problem = Problem::parse("hq=4,sq=3,sk=70,d=4,bias=hk_holes_3");
  Call call(problem, 13, {});
  constexpr std::int64_t kKey = 66;
  std::int64_t hidden = 0;
  for (std::int64_t head = 0; head < problem.num_heads_q; ++head) {
    call.K.view().set(std::numeric_limits<double>::quiet_NaN(), 0, kKey, head, 1);
    hidden += std::isinf(problem.bias_at(0, head, 0, kKey)) ? 1 : 0;
  }
  REQUIRE(call.forward(flash2_kernel()) == ATTEST_OK);
  for (std::int64_t head = 0; head < problem.num_heads_q; ++head) {
    const bool hides = std::isinf(problem.bias_at(0, head, 0, kKey));
    CHECK(std::isnan(call.O(0, 0, head, 0)) == !hides);
    CHECK(std::isnan(call.LSE.view()(0, head, 0)) == !hides);
  }
  CHECK(hidden > 0);
  CHECK(hidden < problem.num_heads_q);
}

TEST_CASE("one head may stand for all through stride zero", "[cpu]") {
  const Problem problem = Problem::parse("hq=3,sq=20,sk=70,d=4");
  for (const attest_kernel* kernel : kernels()) {
    INFO(kernel->description.name);
    Call copied(problem, 13, {}), repeated(problem, 13, {});
    for (const StoredTensor* input : {&copied.K, &copied.V}) {
      for (std::int64_t j = 0; j < 70; ++j) {
        for (std::int64_t head = 1; head < 3; ++head) {
          for (std::int64_t c = 0; c < 4; ++c) {
            input->view().set(input->view()(0, j, 0, c), 0, j, head, c);
          }
        }
      }
    }
    repeated.K.abi()->strides[2] = 0;
    repeated.V.abi()->strides[2] = 0;
    run_both(copied, *kernel);
    run_both(repeated, *kernel);
    CHECK(copied.output_bits() == repeated.output_bits());
  }
}

}  // namespace
}  // namespace attest::cpu
