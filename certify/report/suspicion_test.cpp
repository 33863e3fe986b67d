#include "certify/report/suspicion.hpp"

#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"
#include "proptest/laws/law.hpp"

namespace attest::certify {
namespace {

using proptest::Case;

Case plain_case() {
  return {Problem::parse("hq=2,sq=9,sk=20,d=8"), proptest::Values::normal, 3, 1};
}

std::vector<Suspicion> seen(const attest_kernel& kernel, const std::string& message = "") {
  return suspicions_of(kernel, plain_case(), plain_case(), message);
}

TEST_CASE("what a message tells is named without a call", "[suspicion]") {
  attest_kernel none{};  // cannot be called
  const auto name = [&](const char* message) { return seen(none, message).at(0).name; };
  CHECK(name("input_written: V was written in forward, at byte 4") == "inputs_changed");
  CHECK(name("input_written: the argument structs was written in forward, at byte 4") ==
        "arguments_changed");
  CHECK(name("input Q was modified") == "inputs_changed");
  CHECK(name("O: its description was modified") == "arguments_changed");
  CHECK(name("left_thread: a thread that was left running wrote memory of a call that had "
             "returned") == "left_to_a_thread");
  CHECK(name("stale_memory: memory of an earlier call was read in forward by another thread (a "
             "pointer that was kept, or an address computed wrongly)") == "left_to_a_thread");
  CHECK(name("O: gap between its elements was written, at byte 5") == "outside_output");
}

TEST_CASE("ordinary mistakes are not taken for deeds", "[suspicion]") {
  using fixtures::Defect;
  for (const Defect defect :
       {Defect::none, Defect::top_left_causal, Defect::last_key_dropped, Defect::missing_rescale,
        Defect::scale_one_percent, Defect::mean_of_v, Defect::v_clamped, Defect::row_sum_off,
        Defect::nondeterministic, Defect::bf16_accumulation, Defect::nan_output,
        Defect::zero_gradients, Defect::fourth_batch_dropped}) {
    const attest_kernel& kernel = fixtures::defective_kernel(defect);
    INFO(kernel.description.name);
    CHECK(seen(kernel).empty());
  }
}

// A kernel whose results hold NaN from where it had no right to read.
enum class Source { guard, workspace, output };

attest_status spoil(const void* self, const attest_forward_args* args) {
  const auto elements = [](const attest_tensor* tensor) {
    return reinterpret_cast<float*>(static_cast<char*>(tensor->data) + tensor->byte_offset);
  };
  const attest_problem& p = *args->problem;
  const std::int64_t keys = p.batch * p.seqlen_k * p.num_heads_kv * p.head_dim_qk;
  float nan = 0;
  switch (*static_cast<const Source*>(self)) {
    case Source::guard:
      nan = elements(args->K)[keys];
      break;
    case Source::workspace:
      nan = *static_cast<const float*>(args->workspace);
      break;
    case Source::output:
      return ATTEST_OK;
  }
  const std::int64_t results = p.batch * p.seqlen_q * p.num_heads_q * p.head_dim_v;
  for (std::int64_t e = 0; e < results; ++e) elements(args->O)[e] = 0.5F * nan + 1;
  return ATTEST_OK;
}

TEST_CASE("a NaN that arithmetic carried is no output left", "[suspicion]") {
  for (Source source : {Source::guard, Source::workspace, Source::output}) {
    attest_kernel kernel = fixtures::defective_kernel(fixtures::Defect::none);
    kernel.description.features = 0;
    kernel.self = &source;
    kernel.forward = spoil;
    kernel.workspace_bytes = [](const void*, const attest_problem*, std::uint32_t) {
      return sizeof(float);
    };
    const auto deeds = seen(kernel);
    INFO(static_cast<int>(source));
    if (source != Source::output) {
      CHECK(deeds.empty());
      continue;
    }
    REQUIRE(deeds.size() == 1);
    CHECK(deeds.front().name == "unwritten");
  }
}

// Right but for one of two elements, which is the smaller one in half of all draws.
attest_status second_of_two_zero(const void*, const attest_forward_args* args) {
  static const attest_kernel right = fixtures::defective_kernel(fixtures::Defect::none);
  const attest_status status = right.forward(right.self, args);
  const attest_problem& p = *args->problem;
  if (p.batch * p.seqlen_q * p.num_heads_q == 1 && p.head_dim_v == 2) {
    auto* const O = static_cast<char*>(args->O->data) + args->O->byte_offset;
    *reinterpret_cast<float*>(O + args->O->strides[3] * std::int64_t{sizeof(float)}) = 0;
  }
  return status;
}

TEST_CASE("zeros among few elements are not taken for small results", "[suspicion]") {
  attest_kernel kernel = fixtures::defective_kernel(fixtures::Defect::none);
  kernel.forward = second_of_two_zero;
  const Case two{Problem::parse("sq=1,sk=9,d=2"), proptest::Values::normal, 3, 1};
  REQUIRE(proptest::find_law("reference_forward").check(kernel, two).verdict == Verdict::violated);
  CHECK(suspicions_of(kernel, two, two, "").empty());
}

TEST_CASE("state from call to call is a deed", "[suspicion]") {
  const auto kept = seen(fixtures::defective_kernel(fixtures::Defect::kept_state));
  REQUIRE(kept.size() == 1);
}

}  // namespace
}  // namespace attest::certify
