// Every law is seen to fail on a kernel that breaks it, and every defect is seen by some law.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "fixtures/register.hpp"
#include "proptest/laws/law.hpp"
#include "proptest/laws/trials/trial.hpp"
#include "proptest/values/fixed_problems.hpp"
#include "proptest/values/generator.hpp"

namespace attest::proptest {
namespace {

constexpr std::uint64_t kSeed = 2;

bool fails(const LawResult& result) {
  return result.verdict == Verdict::violated || result.verdict == Verdict::improbable ||
         result.verdict == Verdict::crashed;
}

TEST_CASE("the kernels without a defect keep every law", "[defects]") {
  const std::uint64_t cases = attest::testing::is_nightly() ? 100 : 4;
  for (const attest_kernel* kernel :
       {&fixtures::defective_kernel(fixtures::Defect::none),
        &fixtures::defective_loss_kernel(fixtures::LossDefect::none)}) {
    for (std::uint64_t index = 0; index < cases; ++index) {
      const Case c = generate(kernel->description, Tier::smoke, kSeed, index);
      for (const Law& law : laws()) {
        const LawResult result = law.check(*kernel, c);
        INFO(law.name << " " << c.problem.to_string() << ": " << result.message);
        CHECK_FALSE(fails(result));
      }
    }
  }
}

void check_every_law(const attest_kernel& kernel) {
  const std::uint64_t cases = attest::testing::is_nightly() ? 100 : 4;
  for (std::uint64_t index = 0; index < cases; ++index) {
    const Case c = generate(kernel.description, Tier::smoke, kSeed, index);
    for (const Law& law : laws()) {
      if (!concerns(law, kernel.description)) continue;
      const LawResult result = law.check(kernel, c);
      INFO(law.name << " " << c.problem.to_string() << ": " << result.message);
      CHECK_FALSE(fails(result));
    }
  }
}

// Computed in float64 throughout; the corpus claims narrower types only, as its defects need.
TEST_CASE("a kernel in f64 without a defect keeps every law", "[defects]") {
  attest_kernel kernel = fixtures::defective_kernel(fixtures::Defect::none);
  kernel.description.dtypes = 1u << ATTEST_F64;
  check_every_law(kernel);
}

// Aligned at the top left alone, with fewer and more keys than queries, as torch's function is.
TEST_CASE("a kernel of top-left masks without a defect keeps every law", "[defects]") {
  attest_limits limits{};
  limits.struct_size = sizeof limits;
  limits.only = ATTEST_ONLY_TOP_LEFT;
  attest_kernel kernel = fixtures::defective_kernel(fixtures::Defect::none);
  kernel.description.features &= ~std::uint32_t{ATTEST_CAUSAL_BOTTOM_RIGHT};
  kernel.description.limits = &limits;
  check_every_law(kernel);
}

// Refused by what the law itself says, not only because the reference says otherwise.
bool fails_by_itself(const LawResult& result) {
  return fails(result) && result.message.rfind(kWrongAlike, 0) != 0;
}

// The number of the first case of the law that refuses the kernel; kCases when none does.
std::uint64_t first_refusal(const attest_kernel& kernel, const Law& law, std::uint64_t cases,
                            const std::function<bool(const LawResult&)>& refuses = fails,
                            std::uint64_t seed = kSeed) {
  for (std::uint64_t index = 0; index < cases; ++index) {
    const Case c = generate(kernel.description, Tier::smoke, seed, index);
    if (refuses(law.check(kernel, c))) return index;
  }
  return cases;
}

// Number of cases of the smoke tier.
const std::uint64_t kCases = tier_cases(Tier::smoke);

// The laws that refuse the kernel on a case of the smoke tier, in their order.
std::string refusing_laws(const attest_kernel& kernel, std::uint64_t index) {
  const Case c = generate(kernel.description, Tier::smoke, kSeed, index);
  std::string names;
  for (const Law& law : laws()) {
    if (fails(law.check(kernel, c))) names += " " + std::string(law.name);
  }
  return names;
}

// The fixed case of a seed that a reference law refuses the kernel on; "" when there is none.
std::string refused_fixed_case(const attest_kernel& kernel, std::uint64_t seed) {
  for (const Case& c : fixed_cases(kernel.description, seed)) {
    for (const char* law : {"reference_forward", "reference_backward"}) {
      if (fails(find_law(law).check(kernel, c))) return c.problem.to_string();
    }
  }
  return "";
}

bool on_fixed_problems(fixtures::Defect defect) {
  using fixtures::Defect;
  const bool of_serving_kernels =
      defect >= Defect::lse_of_first_group_head && defect <= Defect::dkv_from_last_key;
  const bool of_sinks = defect >= Defect::sinks_ignored && defect <= Defect::dsinks_without_dlse;
  const bool of_bias = defect >= Defect::bias_ignored && defect <= Defect::dbias_hidden_unwritten;
  const bool of_pages = defect >= Defect::page_past_length && defect <= Defect::block_table_ignored;
  const bool of_shared_kv =
      defect >= Defect::shared_kv_at_other_end && defect <= Defect::shared_kv_scores_cut;
  const bool of_masks =
      defect >= Defect::head_mask_ignored && defect <= Defect::negative_end_at_diagonal;
  return of_serving_kernels || of_sinks || of_bias || of_masks || of_pages || of_shared_kv ||
         defect == Defect::wide_window_ignored;
}

// Laws of claims that no problem shows, and the defects that each refuses.
const std::multimap<std::string_view, fixtures::Defect>& by_claims_of_bits() {
  using fixtures::Defect;
  static const std::multimap<std::string_view, Defect> defects{
      {"batch_invariance", Defect::splits_by_longest},
      {"batch_invariance", Defect::tile_by_batch},
      {"batch_invariance", Defect::order_by_place},
      {"split_invariance", Defect::splits_change_bits},
      {"split_invariance", Defect::last_keys_of_splits_dropped},
      {"nan_propagation", Defect::nan_scores_dropped},
      {"nan_propagation", Defect::nan_rows_empty},
      {"nan_propagation", Defect::zero_weights_skipped},
      {"infinity_propagation", Defect::infinities_clamped},
      {"hidden_nonfinite", Defect::masked_after_product},
      {"hidden_nonfinite", Defect::bias_hides_by_sum},
      {"hidden_nonfinite", Defect::head_mask_by_product}};
  return defects;
}

bool breaks_claim_of_bits(fixtures::Defect defect) {
  return std::any_of(by_claims_of_bits().begin(), by_claims_of_bits().end(),
                     [&](const auto& one) { return one.second == defect; });
}

TEST_CASE("defects of bits and of NaN are refused by their law, whatever the seed", "[defects]") {
  for (const auto& [law, defect] : by_claims_of_bits()) {
    const attest_kernel& kernel = fixtures::defective_kernel(defect);
    std::printf("%-34s %-20s refused at case", kernel.description.name, std::string(law).c_str());
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      INFO(kernel.description.name << " seed " << seed);
      const std::uint64_t first = first_refusal(kernel, find_law(law), kCases, fails, seed);
      std::printf(" %llu", static_cast<unsigned long long>(first));
      CHECK(first < kCases);
    }
    std::printf("\n");
  }
}

// Without the claims nothing is asked, and results that are right within their bounds pass.
TEST_CASE("kernels without a claim are not asked for its bits", "[defects]") {
  for (const auto& [law, defect] : by_claims_of_bits()) {
    attest_kernel kernel = fixtures::defective_kernel(defect);
    kernel.description.features &=
        ~std::uint32_t{ATTEST_BATCH_INVARIANT | ATTEST_SPLIT_INVARIANT | ATTEST_NONFINITE};
    INFO(kernel.description.name);
    CHECK_FALSE(concerns(find_law(law), kernel.description));
    const Case c{Problem::parse("b=2,sq=3,sk=9,d=4"), Values::normal, 1, 1};
    const LawResult asked = find_law(law).check(kernel, c);
    CHECK(asked.verdict == Verdict::unsupported);
    CHECK_THAT(asked.message, Catch::StartsWith("not claimed: "));
    constexpr std::uint64_t kFew = 8;
    CHECK(first_refusal(kernel, find_law("reference_forward"), kFew) == kFew);
  }
}

TEST_CASE("some defects are refused on the fixed problems, whatever the seed", "[defects]") {
  using fixtures::Defect;
  const std::uint64_t seeds = attest::testing::is_nightly() ? 5 : 1;
  std::size_t trial = 0;
  for (const fixtures::DefectRecord& record : fixtures::defects()) {
    if (!on_fixed_problems(record.defect)) continue;
    if (!attest::testing::is_turn(trial++, 3)) continue;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      INFO(record.name << " seed " << seed);
      CHECK_FALSE(refused_fixed_case(fixtures::defective_kernel(record.defect), seed).empty());
    }
  }
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    CHECK(refused_fixed_case(fixtures::defective_kernel(Defect::none), seed).empty());
  }
}

// PyTorch 2.9.1 on a CPU, where rows are dense: keys are masked before the scores are scaled.
attest_status mask_before_scale(const void*, const attest_forward_args* x) {
  const attest_kernel& right = fixtures::defective_kernel(fixtures::Defect::none);
  const attest_status status = right.forward(right.self, x);
  const attest_problem& p = *x->problem;
  if (p.softmax_scale < 0 && p.mask.window_right == 0 && x->Q->strides[3] == 1) {
    auto* const out = static_cast<char*>(x->O->data) + x->O->byte_offset;
    *reinterpret_cast<float*>(out) = std::numeric_limits<float>::quiet_NaN();
  }
  return status;
}

TEST_CASE("a negative scale after the mask is refused on the fixed problems", "[defects]") {
  attest_limits limits{};
  limits.struct_size = sizeof limits;
  for (const std::uint32_t only : {ATTEST_ONLY_TOP_LEFT, ATTEST_ONLY_BOTTOM_RIGHT}) {
    limits.only = only;
    attest_kernel kernel = fixtures::defective_kernel(fixtures::Defect::none);
    kernel.description.directions = ATTEST_FORWARD;
    kernel.description.dtypes = 1U << ATTEST_F32;
    kernel.description.limits = &limits;
    CHECK(refused_fixed_case(kernel, kSeed).empty());
    kernel.forward = mask_before_scale;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      INFO("seed " << seed);
      CHECK_FALSE(refused_fixed_case(kernel, seed).empty());
    }
  }
}

// One case for all laws, which share its values and truth.
std::uint64_t first_refusal_by_any(const attest_kernel& kernel) {
  for (std::uint64_t index = 0; index < kCases; ++index) {
    const Case c = generate(kernel.description, Tier::smoke, kSeed, index);
    for (const char* law : {"reference_forward", "reference_backward", "repeat", "score_level",
                            "changed_field", "page_order"}) {
      if (!concerns(find_law(law), kernel.description)) continue;
      if (fails(find_law(law).check(kernel, c))) return index;
    }
  }
  return kCases;
}

TEST_CASE(
    "every other defect is refused by the reference, by repeating or by another level or field",
    "[defects]") {
  std::size_t trial = 0;
  for (const fixtures::DefectRecord& record : fixtures::defects()) {
    if (fixtures::in_long_problems_alone(record.defect))
      continue;                                         // certify/plan/long_problems_test
    if (on_fixed_problems(record.defect)) continue;     // above
    if (breaks_claim_of_bits(record.defect)) continue;  // above
    if (!attest::testing::is_turn(trial++, 8)) continue;
    const attest_kernel& kernel = fixtures::defective_kernel(record.defect);
    const std::uint64_t first = first_refusal_by_any(kernel);
    INFO(record.name);
    REQUIRE(first < kCases);
    std::printf("%-22s refused at case %2llu", std::string(record.name).c_str(),
                static_cast<unsigned long long>(first));
    if (attest::testing::is_nightly()) {
      std::printf(" by%s", refusing_laws(kernel, first).c_str());
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

TEST_CASE("every defect of the loss gradient is refused by its reference law", "[defects]") {
  for (const fixtures::LossDefectRecord& record : fixtures::loss_defects()) {
    const attest_kernel& kernel = fixtures::defective_loss_kernel(record.defect);
    const std::uint64_t first = first_refusal(kernel, find_law("reference_loss"), kCases);
    std::printf("%-22.*s refused at case %llu\n", static_cast<int>(record.name.size()),
                record.name.data(), static_cast<unsigned long long>(first));
    INFO(record.name);
    CHECK(first < kCases);
  }
}

// V = 1 cannot tell a mean from a weighted mean; these laws must, whatever the output rounds to.
TEST_CASE("the mean of V is refused in every dtype", "[defects]") {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    attest_kernel mean = fixtures::defective_kernel(fixtures::Defect::mean_of_v);
    mean.description.dtypes = 1u << abi(dtype);
    for (const char* law : {"reference_forward", "one_hot_probe"}) {
      INFO(name(dtype) << " " << law);
      CHECK(first_refusal(mean, find_law(law), kCases) < kCases);
    }
    CHECK(first_refusal(mean, find_law("ones"), kCases) == kCases);
  }
}

TEST_CASE("results that are wrong alike satisfy no law that compares them", "[defects]") {
  using fixtures::Defect;
  Case c;
  c.problem = Problem::parse("sq=17,sk=33,d=8");
  for (const char* law : {"key_permutation", "query_permutation", "linearity_in_do", "row_shift",
                          "repeated_heads", "mask_forms", "gradient_identity", "score_identity"}) {
    INFO(law);
    CHECK(fails(find_law(law).check(fixtures::defective_kernel(Defect::zero_gradients), c)));
    CHECK_FALSE(fails(find_law(law).check(fixtures::defective_kernel(Defect::none), c)));
  }
  for (const char* law : {"key_permutation", "query_permutation", "linearity_in_v", "split_merge",
                          "duplicate_keys", "row_shift", "repeated_heads", "mask_forms"}) {
    INFO(law);
    CHECK(fails(find_law(law).check(fixtures::defective_kernel(Defect::mean_of_v), c)));
  }
}

TEST_CASE("every law refuses the defect it is for", "[defects]") {
  using fixtures::Defect;
  using fixtures::LossDefect;
  const std::map<std::string_view, LossDefect> breaks_loss{
      {"reference_loss", LossDefect::zero_dx},
      {"loss_layout", LossDefect::strides_ignored},
      {"loss_homogeneity", LossDefect::target_clamped},
      {"loss_permutation", LossDefect::last_key_dropped}};
  const std::map<std::string_view, std::string_view> breaks_by_cheating{
      {"same_memory", "cheat/result_by_pointer"}};
  Registry registry;
  register_fixtures(registry);
  const std::map<std::string_view, Defect> breaks{
      {"reference_forward", Defect::missing_rescale},
      {"reference_backward", Defect::zero_gradients},
      {"ones", Defect::row_sum_off},
      {"score_level", Defect::maximum_from_zero},
      {"changed_field", Defect::plan_keeps_scale},
      {"one_hot_probe", Defect::exp_leak},
      {"uniform_probe", Defect::last_key_dropped},
      {"repeat", Defect::kept_state},
      {"layout_independence", Defect::strides_ignored},
      {"head_independence", Defect::head_offset_zero},
      {"masked_key_independence", Defect::masked_key_read},
      {"key_permutation", Defect::key_position},
      {"query_permutation", Defect::query_position},
      {"linearity_in_v", Defect::v_clamped},
      {"linearity_in_do", Defect::do_clamped},
      {"split_merge", Defect::missing_rescale},
      {"duplicate_keys", Defect::duplicates_merged},
      {"row_shift", Defect::fixed_maximum},
      {"gradient_identity", Defect::dv_halved},
      {"score_identity", Defect::dk_without_scale},
      {"repeated_heads", Defect::gqa_first_head},
      {"mask_forms", Defect::top_left_causal},
      {"sparsity_forms", Defect::ragged_block_dropped},
      {"sinks_off", Defect::sink_off_counted},
      {"sink_merge", Defect::sinks_ignored},
      {"sink_as_key", Defect::dsinks_without_dlse},
      {"own_sinks", Defect::sink_of_first_head},
      {"bias_of_rows", Defect::bias_ignored},
      {"bias_alibi", Defect::bias_before_scale},
      {"bias_mask", Defect::bias_dropped_on_last_tile},
      {"bias_key_sums", Defect::dbias_with_slope},
      {"head_mask_repeated", Defect::head_mask_taken_for_packed},
      {"head_mask_shared", Defect::head_mask_ignored},
      {"query_lengths", Defect::query_lengths_ignored},
      {"offset_window", Defect::minus_one_unbounded},
      {"page_order", Defect::block_table_ignored},
      {"unused_slots", Defect::unused_slot_read},
      {"page_size", Defect::page_past_length},
      {"batch_invariance", Defect::tile_by_batch},
      {"split_invariance", Defect::splits_change_bits},
      {"nan_propagation", Defect::nan_scores_dropped},
      {"infinity_propagation", Defect::infinities_clamped},
      {"hidden_nonfinite", Defect::masked_after_product},
      {"shared_kv", Defect::shared_kv_of_one_head}};
  for (const Law& law : laws()) {
    INFO(law.name);
    REQUIRE(breaks.count(law.name) + breaks_loss.count(law.name) +
                breaks_by_cheating.count(law.name) ==
            1);
    const attest_kernel& broken = breaks.count(law.name) == 1
                                      ? fixtures::defective_kernel(breaks.at(law.name))
                                  : breaks_loss.count(law.name) == 1
                                      ? fixtures::defective_loss_kernel(breaks_loss.at(law.name))
                                      : registry.find(std::string(breaks_by_cheating.at(law.name)));
    CHECK(first_refusal(broken, law, kCases, fails_by_itself) < kCases);
  }
}

// An LSE of -inf leaves no bound of what is made from it.
TEST_CASE("sums of a result that is far off name that result", "[defects]") {
  const Case c{Problem::parse("sq=1,sk=1,d=1,mask=causal_br"), Values::integers, 1, 1};
  for (const char* law : {"gradient_identity", "score_identity"}) {
    const LawResult result = find_law(law).check(
        fixtures::defective_kernel(fixtures::Defect::causal_diagonal_hidden), c);
    INFO(law << ": " << result.message);
    CHECK(result.verdict == Verdict::violated);
    CHECK(result.message.rfind("outside the proved bound: O[", 0) == 0);
  }
}

// A law that compares several outputs would keep its one defect above without some of them.
TEST_CASE("laws see every output they speak of", "[defects]") {
  using fixtures::Defect;
  const std::multimap<std::string_view, Defect> sees{
      {"one_hot_probe", Defect::v_clamped},      // O
      {"one_hot_probe", Defect::lse_shifted},    // LSE
      {"one_hot_probe", Defect::dv_halved},      // dV
      {"one_hot_probe", Defect::delta_omitted},  // dQ and dK
      {"mask_forms", Defect::window_off_by_one},
      {"repeat", Defect::o_needs_lse},          // the call without LSE
      {"repeat", Defect::stored_lse_modified},  // inputs of backward
      {"layout_independence", Defect::lse_strides_ignored},
      {"layout_independence", Defect::dlse_strides_ignored},
      {"head_independence", Defect::gqa_head_modulo},
      {"masked_key_independence", Defect::backward_unmasked},  // dQ
      {"query_permutation", Defect::lse_of_another_row},
      {"linearity_in_do", Defect::delta_from_do},  // dQ and dK
      {"split_merge", Defect::lse_base_two},
      {"row_shift", Defect::delta_omitted},            // dQ
      {"sinks_off", Defect::dsinks_off_unwritten},     // dSinks
      {"sink_merge", Defect::lse_without_sink},        // LSE
      {"sink_as_key", Defect::lse_without_sink},       // LSE
      {"sink_as_key", Defect::sinks_ignored},          // O
      {"bias_of_rows", Defect::bias_in_bf16_forward},  // LSE
      {"repeated_heads", Defect::dk_first_head},       // dK alone
      {"score_identity", Defect::dq_without_scale}};
  // Where backward would fail for the same reason.
  for (const auto& [law, defect] :
       {std::pair{"one_hot_probe", Defect::lse_shifted},
        std::pair{"layout_independence", Defect::lse_strides_ignored}}) {
    INFO(law);
    attest_kernel forward = fixtures::defective_kernel(defect);
    forward.description.directions = ATTEST_FORWARD;
    CHECK(first_refusal(forward, find_law(law), kCases, fails_by_itself) < kCases);
  }
  for (const auto& [law, defect] : sees) {
    INFO(law << " " << fixtures::defective_kernel(defect).description.name);
    CHECK(first_refusal(fixtures::defective_kernel(defect), find_law(law), kCases,
                        fails_by_itself) < kCases);
  }
}

}  // namespace
}  // namespace attest::proptest
