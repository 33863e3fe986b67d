#include "core/registry.hpp"

#include <algorithm>
#include <cstddef>

#include "core/error.hpp"
#include "core/numerics.hpp"
#include "core/testing/catch.hpp"
#include "core/verdict.hpp"

namespace attest {
namespace {

attest_status do_nothing(const void*, const attest_forward_args*) { return ATTEST_OK; }

attest_status do_nothing_backward(const void*, const attest_backward_args*) { return ATTEST_OK; }

attest_kernel kernel_named(const char* name) {
  attest_kernel kernel{};
  kernel.struct_size = sizeof kernel;
  kernel.abi_version = ATTEST_ABI_VERSION;
  kernel.description.struct_size = sizeof kernel.description;
  kernel.description.numerics.struct_size = sizeof kernel.description.numerics;
  kernel.description.name = name;
  kernel.description.directions = ATTEST_FORWARD;
  kernel.description.dtypes = 1u << ATTEST_F32;
  kernel.forward = do_nothing;
  return kernel;
}

TEST_CASE("unknown names bring the nearest", "[registry]") {
  Registry registry;
  const attest_kernel flash2 = kernel_named("cpu/flash2");
  registry.add(&flash2);
  CHECK(&registry.find("cpu/flash2") == &flash2);
  CHECK_THROWS_WITH(registry.find("cpu/flash1"), Catch::Contains("did you mean 'cpu/flash2'"));
  CHECK(registry.names() == std::vector<std::string>{"cpu/flash2"});
}

TEST_CASE("code that counts its words is found by its kernel", "[registry]") {
  Registry registry;
  const attest_kernel counted = kernel_named("counted"), plain = kernel_named("plain");
  registry.add(&counted, {[](const attest_forward_args&, MovedWords* words) { words->reads = 3; }});
  registry.add(&plain);
  MovedWords words;
  registry.counted_code("counted").forward({}, &words);
  CHECK(words.total() == 3);
  CHECK(registry.counted_code("counted").backward == nullptr);
  CHECK(registry.counted_code("plain").forward == nullptr);
  CHECK(registry.counted_code("other").forward == nullptr);
}

TEST_CASE("a kernel that is not here says why", "[registry]") {
  Registry registry;
  registry.add_absent("gpu/flash2@device", "needs a CUDA device");
  CHECK_THROWS_WITH(registry.find("gpu/flash2@device"),
                    "kernel 'gpu/flash2@device' needs a CUDA device");
  CHECK_THROWS_WITH(registry.find("gpu/flash2"), Catch::Contains("unknown kernel"));
  CHECK(registry.names().empty());
}

TEST_CASE("versions of the ABI", "[registry]") {
  attest_kernel kernel = kernel_named("old");
  const auto objection = [&](std::uint32_t version, std::uint32_t features) {
    kernel.abi_version = version;
    kernel.description.features = features;
    return version_objection(kernel);
  };
  CHECK(objection(1, ATTEST_LSE).empty());
  CHECK(objection(2, ATTEST_LSE | ATTEST_SINKS).empty());
  CHECK(objection(2, ATTEST_BIAS).empty());
  for (const std::uint32_t claim :
       {ATTEST_SINKS, ATTEST_PAGED_KV, ATTEST_BIAS, ATTEST_SHARED_KV, ATTEST_BATCH_INVARIANT,
        ATTEST_SPLIT_INVARIANT, ATTEST_NONFINITE, ATTEST_HEAD_MASK, ATTEST_QUERY_LENGTHS,
        ATTEST_OFFSET_WINDOW}) {
    CHECK_THAT(objection(1, claim), Catch::Contains("has bits of version 2"));
  }
  CHECK_THAT(objection(0, 0), Catch::Contains("abi_version is 0"));
  CHECK_THAT(objection(3, 0), Catch::Contains("versions 1 to 2"));
}

// Kernels of version 1 were compiled with these numbers.
TEST_CASE("fields of version 1 are where they were", "[registry]") {
  CHECK(offsetof(attest_tensor, byte_offset) == 40);
  CHECK(offsetof(attest_problem, mask) == 96);
  CHECK(offsetof(attest_problem, num_threads) == 216);
  CHECK(offsetof(attest_problem, sinks) == 224);
  CHECK(offsetof(attest_problem, paged_kv) == 232);
  CHECK(sizeof(attest_paged_kv) == 40);
  CHECK(offsetof(attest_problem, num_splits) > offsetof(attest_problem, sinks));
  CHECK(offsetof(attest_forward_args, message_bytes) == 88);
  CHECK(offsetof(attest_backward_args, message_bytes) == 128);
  CHECK(offsetof(attest_backward_args, dSinks) == 136);
  CHECK(offsetof(attest_forward_args, bias) == 96);
  CHECK(offsetof(attest_backward_args, bias) == 144);
  CHECK(offsetof(attest_backward_args, dBias) == 152);
  CHECK(sizeof(attest_mask) == 120);
  CHECK(sizeof(attest_loss_args) == 120);
  CHECK(sizeof(attest_numerics) == 168);
  CHECK(sizeof(attest_description) == 312);
  CHECK(offsetof(attest_kernel, forward) == 344);
  CHECK(sizeof(attest_kernel) == 368);
}

TEST_CASE("malformed kernels are refused", "[registry]") {
  Registry registry;
  const attest_kernel good = kernel_named("good");
  registry.add(&good);
  const auto refused = [&registry](const attest_kernel& kernel, const std::string& why) {
    CHECK_THROWS_WITH(registry.add(&kernel), Catch::Contains(why));
  };
  CHECK_THROWS_AS(registry.add(nullptr), InvalidProblem);
  refused(kernel_named("good"), "taken");
  refused(kernel_named(""), "empty");
  refused(kernel_named(nullptr), "empty");
  attest_kernel kernel = kernel_named("bad");
  kernel.abi_version = 99;
  refused(kernel, "abi_version is 99, this program speaks versions 1 to 2");
  kernel = kernel_named("bad");
  kernel.description.struct_size = 1;
  refused(kernel, "struct_size");
  kernel = kernel_named("bad");
  kernel.forward = nullptr;
  refused(kernel, "without a forward");
  kernel = kernel_named("bad");
  kernel.description.directions = ATTEST_FORWARD | ATTEST_BACKWARD;
  refused(kernel, "without a backward");
  kernel.description.directions = ATTEST_LOSS_GRADIENT;
  refused(kernel, "loss_gradient");
  kernel.description.directions = 0;
  refused(kernel, "no direction");
  kernel = kernel_named("bad");
  kernel.description.dtypes = 0;
  refused(kernel, "no dtype");
}

TEST_CASE("backward needs no LSE", "[registry]") {
  Registry registry;
  attest_kernel kernel = kernel_named("keeps_its_lse");
  kernel.description.directions = ATTEST_FORWARD | ATTEST_BACKWARD;
  CHECK_THROWS_WITH(registry.add(&kernel), Catch::Contains("without a backward and a forward"));
  kernel.backward = do_nothing_backward;
  CHECK_NOTHROW(registry.add(&kernel));
}

TEST_CASE("a zero contract is the plain one", "[numerics]") {
  const Numerics plain = resolve(attest_numerics{}, DType::bf16);
  CHECK(plain.accumulation == Accumulation::nearest);
  CHECK(plain.accumulator_roundoff == 0x1p-24);
  CHECK(plain.p_roundoff == 0);
  CHECK(plain.exp_ulps == 2);
  CHECK(plain.exp_zero_is_one);
  CHECK(plain.delta == DeltaSource::outputs);
  CHECK(plain.output_roundoff == 0x1p-8);
}

TEST_CASE("declared numerics are resolved", "[numerics]") {
  attest_numerics declared{};
  declared.accumulation = ATTEST_TRUNCATING;
  declared.p_cast = 1 + ATTEST_F16;
  declared.flushes_p = 1;
  declared.p_normalized = 1;
  declared.sum_after_cast = 1;
  declared.exp_ulps = 40;
  declared.exp_zero_not_one = 1;
  declared.gqa_partial = 1 + ATTEST_BF16;
  declared.delta_from_p = 1;
  const Numerics numerics = resolve(declared, DType::f16);
  CHECK(numerics.accumulation == Accumulation::truncating);
  CHECK(numerics.p_roundoff == 0x1p-11);
  CHECK(numerics.p_underflow == 0x1p-14);
  CHECK(numerics.normalize == CastOrder::before);
  CHECK(numerics.row_sum == CastOrder::after);
  CHECK(numerics.exp_ulps == 40);
  CHECK_FALSE(numerics.exp_zero_is_one);
  CHECK(numerics.gqa_partial_roundoff == 0x1p-8);
  CHECK(numerics.delta == DeltaSource::pairs);
  attest_numerics doubles{};
  CHECK(resolve(doubles, DType::f64).accumulator_roundoff == 0x1p-53);
  doubles.accumulator = 1 + ATTEST_F64;
  CHECK(resolve(doubles, DType::f32).accumulator_roundoff == 0x1p-53);
}

TEST_CASE("a contract may name the tensors' own type", "[numerics]") {
  attest_numerics declared{};
  declared.p_cast = declared.gqa_partial = declared.dq_accumulator = ATTEST_INPUT_DTYPE;
  declared.dkv_accumulator = declared.gqa_accumulator = declared.dp_cast = ATTEST_INPUT_DTYPE;
  declared.score_cast = ATTEST_INPUT_DTYPE;
  const Numerics bf16 = resolve(declared, DType::bf16), f16 = resolve(declared, DType::f16);
  CHECK(bf16.p_roundoff == 0x1p-8);
  CHECK(bf16.gqa_partial_roundoff == 0x1p-8);
  CHECK(bf16.dq_roundoff == 0x1p-8);
  CHECK(bf16.dkv_roundoff == 0x1p-8);
  CHECK(bf16.gqa_sum_roundoff == 0x1p-8);
  CHECK(bf16.dp_roundoff == 0x1p-8);
  CHECK(bf16.score_roundoff == 0x1p-8);
  CHECK(f16.score_underflow == 0x1p-25);
  CHECK(f16.dp_underflow == 0x1p-25);
  CHECK(f16.dkv_underflow == 0x1p-25);
  CHECK(f16.gqa_sum_underflow == 0x1p-25);
  CHECK(bf16.p_underflow == 0);
  CHECK(f16.p_roundoff == 0x1p-11);
  CHECK(f16.p_underflow == 0x1p-25);
  CHECK(f16.accumulator_roundoff == 0x1p-24);
  declared.accumulator = ATTEST_INPUT_DTYPE;
  CHECK(resolve(declared, DType::bf16).accumulator_roundoff == 0x1p-8);
}

TEST_CASE("a type that holds every value of the accumulator rounds nothing", "[numerics]") {
  attest_numerics declared{};
  declared.p_cast = declared.gqa_partial = declared.dq_accumulator = ATTEST_INPUT_DTYPE;
  declared.dkv_accumulator = declared.gqa_accumulator = declared.dp_cast = ATTEST_INPUT_DTYPE;
  declared.score_cast = ATTEST_INPUT_DTYPE;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Numerics numerics = resolve(declared, dtype);
    CHECK(numerics.p_roundoff == 0);
    CHECK(numerics.gqa_partial_roundoff == 0);
    CHECK(numerics.dq_roundoff == 0);
    CHECK(numerics.dkv_roundoff == 0);
    CHECK(numerics.gqa_sum_roundoff == 0);
    CHECK(numerics.dp_roundoff == 0);
    CHECK(numerics.score_roundoff == 0);
  }
  // float16 is the more precise of these two, but not as wide.
  declared.accumulator = 1 + ATTEST_BF16;
  declared.p_cast = 1 + ATTEST_F16;
  CHECK(resolve(declared, DType::f32).p_underflow == 0x1p-25);
}

TEST_CASE("the exponential's error may be declared for one type of tensors", "[numerics]") {
  attest_numerics declared{};
  declared.exp_ulps_of[ATTEST_BF16] = 839;
  CHECK(resolve(declared, DType::bf16).exp_ulps == 839);
  CHECK(resolve(declared, DType::f32).exp_ulps == 2);
  declared.exp_ulps = 5;
  CHECK(resolve(declared, DType::bf16).exp_ulps == 839);
  CHECK(resolve(declared, DType::f32).exp_ulps == 5);
}

TEST_CASE("what is flushed is small in the arithmetic's type", "[numerics]") {
  attest_numerics declared{};
  CHECK(resolve(declared, DType::f32).flushed_below == 0);
  declared.flushes_subnormals = 1;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Numerics numerics = resolve(declared, dtype);
    CHECK(numerics.flushed_below == 0x1p-126);
    CHECK(numerics.p_underflow == 0x1p-126);
    CHECK(numerics.output_underflow == std::max(0x1p-126, underflow_unit(dtype)));
  }
  CHECK(resolve(declared, DType::f64).flushed_below == 0x1p-1022);
}

TEST_CASE("impossible contracts are refused", "[numerics]") {
  attest_numerics declared{};
  declared.exp_ulps = -1;
  CHECK_THROWS_WITH(resolve(declared, DType::f32), Catch::Contains("exp_ulps"));
  declared = {};
  declared.exp_ulps_of[ATTEST_F16] = -1;
  CHECK_THROWS_WITH(resolve(declared, DType::f32), Catch::Contains("exp_ulps_of"));
  declared = {};
  declared.operand_roundoff = -1;
  CHECK_THROWS_WITH(resolve(declared, DType::f32), Catch::Contains("operand_roundoff"));
  declared = {};
  declared.accumulation = ATTEST_FUSED_BLOCKS;
  CHECK_THROWS_WITH(resolve(declared, DType::f32), Catch::Contains("fused_block"));
  declared = {};
  declared.accumulation = static_cast<attest_accumulation>(3);
  CHECK_THROWS_AS(resolve(declared, DType::f32), InvalidProblem);
  declared = {};
  declared.p_cast = 9;
  CHECK_THROWS_AS(resolve(declared, DType::f32), InvalidProblem);
}

TEST_CASE("the graver verdict wins", "[verdict]") {
  CHECK(graver(Verdict::passed, Verdict::vacuous) == Verdict::passed);
  CHECK(graver(Verdict::violated, Verdict::improbable) == Verdict::violated);
  CHECK(graver(Verdict::violated, Verdict::crashed) == Verdict::crashed);
  CHECK(graver(Verdict::unsupported, Verdict::vacuous) == Verdict::vacuous);
  CHECK(name(Verdict::unsupported) == "unsupported");
}

}  // namespace
}  // namespace attest
