#include "certify/report/suspicion.hpp"

#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"

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
             "pointer that was kept)") == "left_to_a_thread");
  CHECK(name("stale_memory: memory of an earlier call was read in forward (a pointer that was "
             "kept)") == "earlier_memory");
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

TEST_CASE("state from call to call is a deed", "[suspicion]") {
  const auto kept = seen(fixtures::defective_kernel(fixtures::Defect::kept_state));
  REQUIRE(kept.size() == 1);
}

}  // namespace
}  // namespace attest::certify
