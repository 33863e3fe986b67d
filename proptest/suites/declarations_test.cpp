// Numerics that change a kernel's error by more than a few roundoffs are declared: with the
// declaration the kernel passes, without it the same results are refused
// (docs/theory/error-bounds/README.md).
#include <cmath>
#include <cstdio>
#include <string>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/emulated/emulation.hpp"
#include "proptest/judge/truth/truth.hpp"
#include "proptest/laws/law.hpp"
#include "proptest/values/values.hpp"

namespace attest::proptest {
namespace {

using fixtures::Emulation;
using fixtures::Merge;

constexpr std::uint64_t kWithoutLseGradient = 2;

// A run of one emulation, judged by its own declaration or by another.
class Judged {
 public:
  Judged(const std::string& text, const Emulation& emulation, InputValues in)
      : problem_(Problem::parse(text)),
        emulation_(emulation),
        in_(std::move(in)),
        kernel_(fixtures::emulated_kernel(emulation_, problem_.dtype)),
        run_(proptest::run(kernel_, problem_, in_, Direction::backward,
                           Case{problem_, Values::normal, kWithoutLseGradient, 1})) {
    REQUIRE_FALSE(uses_dlse(kernel_.description, kWithoutLseGradient));
    REQUIRE(run_.completed());
  }
  Judged(const Judged&) = delete;
  Judged& operator=(const Judged&) = delete;

  template <typename Change>
  std::vector<Comparison> with(const Change& change) const {
    attest_description description = kernel_.description;
    change(description.numerics);
    const Truth truth(description, problem_, in_, Direction::backward, kWithoutLseGradient);
    return truth.judge(run_);
  }
  std::vector<Comparison> as_declared() const {
    return with([](attest_numerics&) {});
  }

 private:
  Problem problem_;
  Emulation emulation_;
  InputValues in_;
  attest_kernel kernel_;
  KernelRun run_;
};

double worst(const std::vector<Comparison>& comparisons, std::string_view output) {
  for (const Comparison& comparison : comparisons) {
    if (comparison.output == output) return comparison.ratio;
  }
  FAIL("no output " << output);
  return 0;
}

InputValues values_of(const std::string& text, Values values, std::uint64_t seed = 1) {
  return make_values(Problem::parse(text), values, seed);
}

void fill(Tensor& tensor, double value) {
  double* data = tensor.doubles();
  for (std::int64_t e = 0; e < tensor.view().size(); ++e) data[e] = value;
}

// Weights exp(LSE_s - LSE) do not sum to one: with V = 1 nothing else of the error is left, and it
// grows with the scores.
TEST_CASE("splits merged through LSE must be declared", "[validation]") {
  for (const Merge merge : {Merge::lse_at_once, Merge::lse_one_by_one}) {
    Emulation e;
    e.name = "emulated/split";
    e.splits = 8;
    e.block_k = 8;
    e.merge = merge;
    const std::string text = "sq=64,sk=256,d=64,dv=8";
    InputValues in = values_of(text, Values::logits_1e4);
    fill(in.V, 1);
    const Judged judged(text, e, in);
    const double undeclared = worst(judged.with([](attest_numerics& n) { n.lse_splits = 0; }), "O");
    const double declared = worst(judged.as_declared(), "O");
    std::printf("merge through LSE: error over bound undeclared %.2f, declared %.2f\n", undeclared,
                declared);
    CHECK(undeclared > 1);
    CHECK(declared <= 1);
    CHECK(gravest(judged.as_declared()).verdict == Verdict::passed);
  }
}

TEST_CASE("a contract without a bound is unsupported, never guessed", "[laws]") {
  Emulation e;
  e.name = "emulated/plain";
  const Case c{Problem::parse("sq=4,sk=6,d=8"), Values::normal, 1, 1};
  attest_kernel kernel = fixtures::emulated_kernel(e, DType::f32);
  for (const DType low : {DType::bf16, DType::f16}) {
    kernel.description.numerics.accumulator = 1 + abi(low);
    kernel.description.numerics.accumulation = ATTEST_TRUNCATING;
    for (const char* law : {"reference_forward", "reference_backward", "ones", "split_merge"}) {
      INFO(law);
      CHECK(find_law(law).check(kernel, c).verdict == Verdict::unsupported);
    }
    const InputValues in = make_values(c.problem, c.values, c.seed);
    CHECK_THROWS_AS(
        Truth(kernel.description, c.problem, in, Direction::forward, kWithoutLseGradient),
        InvalidProblem);
  }
  kernel.description.numerics.accumulation = ATTEST_NEAREST;
  CHECK(find_law("reference_forward").check(kernel, c).verdict != Verdict::unsupported);
  kernel.description.numerics.delta_from_p = 1;
  CHECK(find_law("reference_forward").check(kernel, c).verdict == Verdict::unsupported);
  kernel.description.numerics.accumulator = 1 + abi(DType::f32);
  CHECK(find_law("reference_forward").check(kernel, c).verdict == Verdict::passed);
}

TEST_CASE("splits merged by maxima and sums need no declaration", "[validation]") {
  Emulation e;
  e.name = "emulated/split";
  e.splits = 8;
  e.block_k = 8;
  e.merge = Merge::sums_at_once;
  const std::string text = "sq=64,sk=256,d=64,dv=8";
  InputValues in = values_of(text, Values::logits_1e4);
  fill(in.V, 1);
  const Judged judged(text, e, in);
  CHECK(gravest(judged.as_declared()).verdict == Verdict::passed);
}

TEST_CASE("a depth that is declared must be kept", "[validation]") {
  // One chain over 4094 equal weights between two larger ones, declared as a balanced tree. The
  // larger ones come first in either direction, so that the maximum does not rise among equals.
  const std::string text = "sq=1,sk=4096,d=4,dv=8";
  Emulation chain;
  chain.name = "emulated/chain";
  chain.summation = fixtures::Summation::sequential;
  chain.block_k = 4096;
  InputValues in = values_of(text, Values::all_positive);
  fill(in.Q, 1);
  fill(in.V, round_to(DType::f32, 0.3));
  for (std::int64_t j = 0; j < 4096; ++j) {
    for (std::int64_t l = 0; l < 4; ++l) in.K.set(j % 4095 == 0 ? 1 : 0.3125, 0, j, 0, l);
  }
  const Judged judged(text, chain, in);
  const auto tree = [](attest_numerics& n) { n.summation_depth = 13; };
  CHECK(gravest(judged.as_declared()).verdict == Verdict::passed);
  CHECK(gravest(judged.with(tree)).verdict == Verdict::violated);

  Emulation pairwise = chain;
  pairwise.summation = fixtures::Summation::pairwise;
  pairwise.tiled_sums = 1;
  pairwise.summation_depth = 13;
  const Judged kept(text, pairwise, in);
  CHECK(gravest(kept.as_declared()).verdict == Verdict::passed);
}

TEST_CASE("LSE in base two must be declared", "[validation]") {
  Emulation e;
  e.name = "emulated/base_two";
  e.lse = fixtures::LseForm::stored_base_two;
  const std::string text = "sq=8,sk=40,d=16";
  const Judged judged(text, e, values_of(text, Values::normal));
  CHECK(gravest(judged.as_declared()).verdict == Verdict::passed);
  const auto natural = [](attest_numerics& n) { n.lse_base_two = 0; };
  CHECK(worst(judged.with(natural), "LSE") > 1);
}

TEST_CASE("a low precision dQ accumulator must be declared", "[validation]") {
  // More keys than 1/u: the bound of a chain of roundings to nearest stays finite.
  const std::string text = "sq=4,sk=520,d=16,dtype=bf16";
  Emulation e;
  e.name = "emulated/dq";
  e.dq_accumulator = 1 + ATTEST_BF16;
  e.block_k = 1;
  const Judged judged(text, e, values_of(text, Values::all_positive));
  const double undeclared =
      worst(judged.with([](attest_numerics& n) { n.dq_accumulator = 0; }), "dQ");
  const double declared = worst(judged.as_declared(), "dQ");
  std::printf("bf16 accumulator of dQ: error over bound undeclared %.2f, declared %.4f\n",
              undeclared, declared);
  CHECK(undeclared > 1);
  CHECK(declared <= 1);
  CHECK(declared > 0);
}

// n equal contributions, each below half of the smallest positive f16, are lost one by one.
TEST_CASE("a low precision accumulator loses what is subnormal", "[validation]") {
  const std::string text = "sq=1,sk=64,d=1,dv=1,scale=1,dtype=f16";
  Emulation e;
  e.name = "emulated/dq";
  e.dq_accumulator = 1 + ATTEST_F16;
  e.block_k = 1;
  InputValues in = values_of(text, Values::ones);
  fill(in.Q, 0);
  fill(in.dLSE, 0);
  fill(in.dO, 1);
  // dS_j = P (v_j - mean), K has its sign: every contribution to dQ is positive.
  for (std::int64_t j = 0; j < 64; ++j) {
    const double sign = j % 2 == 0 ? 1 : -1;
    in.V.set(sign * 0x1p-10, 0, j, 0, 0);
    in.K.set(sign * 0x1.8p-10, 0, j, 0, 0);  // contributions of 1.5 2^-26
  }
  const Judged judged(text, e, in);
  const std::vector<Comparison> declared = judged.as_declared();
  const Comparison& dQ = declared[2];
  REQUIRE(dQ.output == "dQ");
  CHECK(dQ.got == 0);
  const double relative_only = 64 * unit_roundoff(DType::f16) * std::abs(dQ.exact);
  CHECK(std::abs(dQ.exact) > relative_only + underflow_unit(DType::f16));
  CHECK(gravest(declared).verdict == Verdict::passed);
}

// PyTorch's pass on the CPU in bf16: dK and dV are rounded after every tile of 32 queries.
TEST_CASE("a low precision accumulator of dK and dV must be declared", "[validation]") {
  Emulation e;
  e.name = "emulated/dkv";
  e.dkv_accumulator = 1 + ATTEST_BF16;
  for (const std::int64_t tile : {32, 1}) {
    e.block_k = tile;
    // More rows than 1/u: the bound stays finite.
    const std::string text = "hq=2,hkv=1,sq=300,sk=6,d=16,dtype=bf16";
    const Judged judged(text, e, values_of(text, Values::all_positive));
    const auto undeclared = judged.with([](attest_numerics& n) { n.dkv_accumulator = 0; });
    for (const char* output : {"dK", "dV"}) {
      const double declared = worst(judged.as_declared(), output);
      std::printf("bf16 accumulator of %s: error over bound undeclared %.2f, declared %.4f\n",
                  output, worst(undeclared, output), declared);
      CHECK(worst(undeclared, output) > 1);
      CHECK(declared <= 1);
      CHECK(declared > 0);
    }
    CHECK(gravest(judged.as_declared()).verdict == Verdict::passed);
  }
}

// Automatic differentiation of a softmax between two products in bf16: the product's cotangent dP
// is in their type. Where V is the same for every key, dS is 0 and the error all there is.
TEST_CASE("a cast of dP must be declared, with a delta made of it too", "[validation]") {
  for (const bool pairs : {false, true}) {
    Emulation e;
    e.name = "emulated/dp_cast";
    e.dp_cast = e.p_cast = 1 + ATTEST_BF16;
    e.normalized = 1;
    e.delta_from_p = pairs ? 1 : 0;
    for (const char* dtype : {"f32", "bf16"}) {
      const std::string text = "hq=2,hkv=1,sq=6,sk=9,d=8,bias=hqk_drawn_1,dtype=";
      InputValues in = values_of(text + dtype, Values::normal);
      double* V = in.V.doubles();
      for (std::int64_t k = 0; k < in.V.view().size(); ++k) {
        V[k] = round_to(DType::bf16, 4 + V[k] / 16);
      }
      const Judged judged(text + dtype, e, in);
      const auto undeclared = judged.with([](attest_numerics& n) { n.dp_cast = 0; });
      INFO(dtype << (pairs ? ", delta of P" : ", delta of O"));
      for (const char* output : {"dQ", "dK", "dBias"}) {
        const double declared = worst(judged.as_declared(), output);
        std::printf("bf16 cast of dP, %s: error over bound undeclared %.2f, declared %.4f\n",
                    output, worst(undeclared, output), declared);
        CHECK(worst(undeclared, output) > 1);
        CHECK(declared <= 1);
        CHECK(declared > 0);
      }
      CHECK(gravest(judged.as_declared()).verdict == Verdict::passed);
    }
  }
}

// Two products with a softmax in float32 between them, where all else is in a type of 16 bits.
TEST_CASE("scores that are rounded must be declared", "[validation]") {
  for (const DType type : {DType::bf16, DType::f16}) {
    for (const char* features : {"", ",bias=hqk_drawn_1,softcap=20,alibi=drawn_2"}) {
      Emulation e;
      e.name = "emulated/eager";
      e.score_cast = e.dp_cast = e.p_cast = static_cast<std::uint8_t>(1 + abi(type));
      e.normalized = e.delta_from_p = e.scaled_ds = 1;
      const std::string text = std::string("hq=4,hkv=2,sq=9,sk=24,d=16,scale=0.3,dtype=") +
                               std::string(name(type)) + features;
      InputValues in = values_of(text, Values::normal);
      double* Q = in.Q.doubles();
      for (std::int64_t k = 0; k < in.Q.view().size(); ++k) Q[k] *= 4;
      const Judged judged(text, e, in);
      const auto undeclared = judged.with([](attest_numerics& n) { n.score_cast = 0; });
      INFO(name(type) << features);
      for (const char* output : {"O", "LSE", "dQ", "dK", "dV"}) {
        const double declared = worst(judged.as_declared(), output);
        std::printf("%s scores, %s%s: error over bound undeclared %.2f, declared %.4f\n",
                    std::string(name(type)).c_str(), output, features, worst(undeclared, output),
                    declared);
        CHECK(declared <= 1);
        CHECK(declared > 0);
        CHECK(worst(undeclared, output) > 1);
      }
      CHECK(gravest(judged.as_declared()).verdict == Verdict::passed);
    }
  }
}

// The scale is multiplied in before dS is cast, which leaves more of it below f16's normal numbers.
TEST_CASE("a small dS may be scaled before its cast or after it", "[validation]") {
  Emulation e;
  e.name = "emulated/scaled_ds";
  e.p_cast = 1 + ATTEST_F16;
  const std::string text = "hq=2,sq=24,sk=24,d=64,bias=hqk_drawn_1,dtype=f16";
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u}) {
    InputValues in = values_of(text, Values::normal, seed);
    double *Q = in.Q.doubles(), *V = in.V.doubles();
    for (std::int64_t k = 0; k < in.Q.view().size(); ++k) Q[k] *= 4;
    for (std::int64_t k = 0; k < in.V.view().size(); ++k) {
      V[k] = round_to(DType::f16, V[k] / 1024);
    }
    for (const bool before : {false, true}) {
      e.scaled_ds = before ? 1 : 0;
      const Judged judged(text, e, in);
      const std::vector<Comparison> found = judged.as_declared();
      INFO("before: " << before << " " << gravest(found).reason);
      CHECK(gravest(found).verdict == Verdict::passed);
    }
  }
}

// Equal terms stop counting once their sum is 2^8 times as large: 600 of them end at 256.
TEST_CASE("sums in bf16 that stop growing stay within a finite bound", "[validation]") {
  Emulation running;
  running.name = "emulated/running";
  running.dkv_accumulator = 1 + ATTEST_BF16;
  running.block_k = 1;
  std::string text = "sq=600,sk=1,d=2,dv=2";
  InputValues in = values_of(text, Values::ones);
  fill(in.dO, 1);
  const std::vector<Comparison> of_dV = Judged(text, running, in).as_declared();
  CHECK(of_dV[4].output == "dV");
  CHECK(of_dV[4].got == 256);
  CHECK(gravest(of_dV).verdict == Verdict::passed);

  Emulation low;
  low.name = "emulated/low";
  low.accumulator = low.p_cast = 1 + ATTEST_BF16;
  low.block_k = 600;
  text = "sq=1,sk=600,d=2,dv=2";
  in = values_of(text, Values::ones);
  fill(in.Q, 0);
  const std::vector<Comparison> of_O = Judged(text, low, in).as_declared();
  CHECK(of_O[0].output == "O");
  CHECK(of_O[0].got == static_cast<double>(256 * (1.0f / 600)));
  CHECK(gravest(of_O).verdict == Verdict::passed);
}

TEST_CASE("low precision sums over the heads of a group must be declared", "[validation]") {
  const std::string text = "hq=16,hkv=1,sq=8,sk=6,d=16";
  Emulation e;
  e.name = "emulated/group";
  e.gqa_accumulator = 1 + ATTEST_BF16;
  const Judged judged(text, e, values_of(text, Values::normal));
  const auto undeclared = judged.with([](attest_numerics& n) { n.gqa_accumulator = 0; });
  // Each head alone rounded once allows less than each of sixteen additions.
  const auto partial = judged.with([](attest_numerics& n) {
    n.gqa_accumulator = 0;
    n.gqa_partial = 1 + ATTEST_BF16;
  });
  for (const char* output : {"dK", "dV"}) {
    CHECK(worst(undeclared, output) > 1);
    CHECK(worst(judged.as_declared(), output) < worst(partial, output));
  }
  CHECK(gravest(judged.as_declared()).verdict == Verdict::passed);
}

// With scores of 0, which no rounding of their operands changes, those of the other products are
// left.
TEST_CASE("operands that are rounded again must be declared", "[validation]") {
  const std::string text = "sq=40,sk=24,d=32";
  InputValues in = values_of(text, Values::normal);
  fill(in.Q, 0);
  for (const fixtures::Operands operands :
       {fixtures::Operands::tf32, fixtures::Operands::tf32_truncated, fixtures::Operands::bf16}) {
    Emulation e;
    e.name = "emulated/operands";
    e.operands = operands;
    const Judged judged(text, e, in);
    const auto scores_alone = judged.with([](attest_numerics& n) {
      n.input_roundoff = n.operand_roundoff;
      n.operand_roundoff = 0;
    });
    for (const char* output : {"O", "dQ", "dV"}) {
      INFO(output);
      CHECK(worst(scores_alone, output) > 1);
    }
    CHECK(gravest(judged.as_declared()).verdict == Verdict::passed);
  }
}

TEST_CASE("the exponential of one type of tensors must be declared", "[validation]") {
  Emulation e;
  e.name = "emulated/exp";
  e.exp_noise_ulps = 838;
  e.exp_of_dtype = 1;
  const std::string text = "sq=20,sk=40,d=16,dtype=bf16";
  const Judged judged(text, e, values_of(text, Values::normal));
  CHECK(worst(judged.with([](attest_numerics& n) { n.exp_ulps_of[ATTEST_BF16] = 0; }), "LSE") > 1);
  // A declaration for another type allows nothing.
  CHECK(worst(judged.with([](attest_numerics& n) {
          n.exp_ulps_of[ATTEST_F32] = n.exp_ulps_of[ATTEST_BF16];
          n.exp_ulps_of[ATTEST_BF16] = 0;
        }),
              "LSE") > 1);
  CHECK(gravest(judged.as_declared()).verdict == Verdict::passed);
}

TEST_CASE("sums in f16 and bf16 must be declared", "[validation]") {
  for (const attest_dtype type : {ATTEST_F16, ATTEST_BF16}) {
    Emulation e;
    e.name = "emulated/low";
    e.accumulator = e.p_cast = static_cast<std::uint8_t>(1 + type);
    e.block_k = 1;
    const std::string text = "sq=4,sk=100,d=16";
    const Judged judged(text, e, values_of(text, Values::positive_v));
    const auto undeclared = judged.with([](attest_numerics& n) { n.accumulator = 0; });
    const double O = worst(judged.as_declared(), "O");
    std::printf("sums in %s: error of O over bound undeclared %.2f, declared %.4f\n",
                std::string(name(dtype_of(type))).c_str(), worst(undeclared, "O"), O);
    CHECK(worst(undeclared, "O") > 1);
    CHECK(O > 0);
    CHECK(gravest(judged.as_declared()).verdict == Verdict::passed);
  }
}

TEST_CASE("low precision sums per query head must be declared", "[validation]") {
  const std::string text = "hq=4,hkv=1,sq=16,sk=24,d=16";
  Emulation e;
  e.name = "emulated/partial";
  e.gqa_partial = 1 + ATTEST_BF16;
  const Judged judged(text, e, values_of(text, Values::normal));
  const auto undeclared = [](attest_numerics& n) { n.gqa_partial = 0; };
  CHECK(worst(judged.with(undeclared), "dK") > 1);
  CHECK(worst(judged.with(undeclared), "dV") > 1);
  CHECK(gravest(judged.as_declared()).verdict == Verdict::passed);
}

// One description for both 16-bit types: P goes through the type of the tensors, and through no
// other.
TEST_CASE("a cast of P to the tensors' own type is held to that type", "[validation]") {
  const std::string text = "sq=16,sk=64,d=32,dtype=f16";
  const auto to_inputs = [](attest_numerics& n) { n.p_cast = ATTEST_INPUT_DTYPE; };
  for (const attest_dtype cast : {ATTEST_F16, ATTEST_BF16}) {
    Emulation e;
    e.name = "emulated/cast_p";
    e.p_cast = static_cast<std::uint8_t>(1 + cast);
    const Judged judged(text, e, values_of(text, Values::positive_v));
    INFO(cast);
    CHECK(gravest(judged.as_declared()).verdict == Verdict::passed);
    CHECK((gravest(judged.with(to_inputs)).verdict == Verdict::passed) == (cast == ATTEST_F16));
  }
}

}  // namespace
}  // namespace attest::proptest
