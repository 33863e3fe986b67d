#include "proptest/signatures/signature.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "cpu/register.hpp"
#include "fixtures/register.hpp"
#include "proptest/judge/truth/truth.hpp"
#include "proptest/laws/law.hpp"
#include "proptest/signatures/deviation.hpp"
#include "proptest/values/fixed_problems.hpp"
#include "proptest/values/generator.hpp"

namespace attest::proptest {
namespace {

using fixtures::Defect;

bool fails(const LawResult& result) { return result.verdict == Verdict::violated; }

struct Failure {
  Case found, shrunk;
};

// The first failure of a reference law, shrunk.
Failure first_failure(const attest_kernel& kernel) {
  constexpr std::uint64_t kSeed = 2, kCases = 60;
  std::vector<Case> cases;
  for (std::uint64_t index = 0; index < kCases; ++index) {
    cases.push_back(generate(kernel.description, Tier::smoke, kSeed, index));
  }
  const std::vector<Case> fixed = fixed_cases(kernel.description, kSeed);
  cases.insert(cases.end(), fixed.begin(), fixed.end());
  for (const Case& c : cases) {
    for (const char* name : {"reference_forward", "reference_backward", "score_level"}) {
      const Law& law = find_law(name);
      if (!fails(law.check(kernel, c))) continue;
      return {c, shrink(c, [&](const Case& smaller) { return fails(law.check(kernel, smaller)); })};
    }
  }
  return {};
}

std::set<std::string> names_of(const attest_kernel& kernel, const Failure& failure) {
  std::set<std::string> names;
  std::string text;
  for (const Signature& one : signatures_of(kernel, failure.shrunk, failure.found)) {
    names.insert(one.name);
    text += " " + one.name;
  }
  std::printf("%-28s%s\n", kernel.description.name, text.empty() ? " -" : text.c_str());
  std::fflush(stdout);
  return names;
}

// Results computed without the reference must be right where nothing deviates.
TEST_CASE("without a deviation the results are the reference's", "[signature]") {
  const attest_kernel& correct = fixtures::defective_kernel(Defect::none);
  constexpr std::uint64_t kSeed = 11, kCases = 30;
  for (std::uint64_t index = 0; index < kCases; ++index) {
    const Case c = generate(correct.description, Tier::smoke, kSeed, index);
    const InputValues values = make_values(c.problem, c.values, c.seed);
    const Truth truth(correct.description, c.problem, values, Direction::backward, c.seed);
    if (!truth.in_domain()) continue;
    const DeviantForward forward = deviant_forward(c.problem, values, Deviation::none);
    KernelRun run;
    run.O = forward.O.value;
    run.LSE = forward.LSE.value;
    const reference::Cotangents cotangents{
        values.dO.view(), uses_dlse(correct.description, c.seed) ? &values.dLSE.view() : nullptr};
    const DeviantBackward backward =
        deviant_backward(c.problem, values, cotangents, {run.O, run.LSE}, Deviation::none);
    run.dQ = backward.dQ.value;
    run.dK = backward.dK.value;
    run.dV = backward.dV.value;
    run.dSinks = truth.backward().dSinks;  // no deviation is of them
    run.dBias = truth.backward().dBias;
    INFO(c.problem.to_string() << " values=" << name(c.values));
    const Judgement judgement = gravest(truth.judge(run));
    INFO(judgement.reason);
    CHECK(judgement.verdict == Verdict::passed);
  }
}

TEST_CASE("every signature is of its defect, and no signature is of another defect",
          "[signature]") {
  const std::map<Defect, std::string> expected{
      {Defect::top_left_causal, "top_left_causal"},
      {Defect::causal_off_by_one, "causal_one_more"},
      {Defect::window_off_by_one, "left_one_more"},
      {Defect::last_key_dropped, "last_key_dropped"},
      {Defect::padded_keys_counted, "padding_counted"},
      {Defect::finite_sentinel, "empty_row_mean"},
      {Defect::softcap_after_mask, "softcap_after_mask"},
      {Defect::backward_unmasked, "mask_ignored"},
      {Defect::lse_of_first_group_head, "lse_of_first_head_for_one_query"},
      {Defect::group_strides_unswapped, "groups_as_rows"},
      {Defect::batch_stride_of_row, "batch_stride_of_row"},
      {Defect::decode_length_of_first, "first_key_length_for_one_query"},
      {Defect::packed_keys_by_queries, "keys_of_neighbours"},
      {Defect::packed_lse_by_token, "lse_by_token"},
      {Defect::scale_twice, "scale_twice"},
      {Defect::alibi_sign, "alibi_sign"},
      {Defect::alibi_first_head, "alibi_first_slope"},
      {Defect::sinks_ignored, "sinks_ignored"},
      {Defect::sink_of_first_head, "sink_of_first_head"},
      {Defect::sink_scaled, "sink_scaled"},
      {Defect::sink_softcapped, "sink_softcapped"},
      {Defect::lse_without_sink, "lse_without_sink"},
      {Defect::bias_ignored, "bias_ignored"},
      {Defect::bias_before_scale, "bias_before_scale"},
      {Defect::bias_of_first_head, "bias_of_first_head"},
      {Defect::bias_of_first_entry, "bias_of_first_entry"},
      {Defect::head_mask_ignored, "head_mask_ignored"},
      {Defect::head_mask_of_first_head, "head_mask_of_first_head"},
      {Defect::head_mask_of_first_entry, "head_mask_of_first_entry"},
      {Defect::query_lengths_ignored, "query_lengths_ignored"},
      {Defect::query_lengths_of_first_entry, "query_lengths_of_first_entry"},
      {Defect::minus_one_unbounded, "negative_end_unbounded"},
      {Defect::causal_diagonal_hidden, "causal_diagonal_hidden"},
      {Defect::dv_scaled, "dv_scaled"},
      {Defect::unbounded_end_as_width, "unbounded_end_as_width"},
      {Defect::negative_end_unbounded, "negative_end_unbounded"},
      {Defect::negative_end_at_diagonal, "negative_end_at_diagonal"},
      {Defect::pages_of_first_entry, "pages_of_first_entry"},
      {Defect::missing_rescale, "missing_rescale"},
      {Defect::mean_of_v, "mean_of_v"},
      {Defect::merge_unweighted, "halves_unweighted"},
      {Defect::lse_without_maximum, "lse_without_maximum"},
      {Defect::lse_base_two, "lse_base_two"},
      {Defect::head_offset_zero, "k_head_zero"},
      {Defect::gqa_head_modulo, "kv_head_modulo"},
      {Defect::zero_gradients, "zero_gradients"},
      {Defect::delta_omitted, "delta_omitted"},
      {Defect::delta_from_do, "delta_from_do"},
      {Defect::dlse_ignored, "dlse_ignored"},
      {Defect::lse_of_another_row, "lse_of_previous_row"},
      {Defect::softcap_slope_omitted, "softcap_slope_omitted"},
      {Defect::dq_without_scale, "dq_without_scale"},
      {Defect::dk_without_scale, "dk_without_scale"},
      {Defect::gqa_first_head, "group_first_head"},
      {Defect::dk_first_head, "dk_first_head"},
      {Defect::tail_key_in_maximum, "pads_in_maximum"},
      {Defect::tail_key_in_dq, "tail_key_weighted"},
      {Defect::padded_query_weighted, "padded_query_weighted"},
      {Defect::maximum_from_zero, "maximum_from_zero"},
      {Defect::maximum_from_minus_1e4, "minus_infinity_10000"},
      {Defect::maximum_from_minus_5e4, "minus_infinity_50000"},
      {Defect::low_rows_empty, "minus_infinity_10000"},
      {Defect::scale_in_bf16, "scale_in_bf16"},
      {Defect::softcap_in_bf16, "softcap_in_bf16"},
      {Defect::softcap_in_f16, "softcap_in_f16"},
      {Defect::batch_head_exchanged, "batch_head_exchanged"},
      {Defect::heads_seqlen_exchanged, "head_key_exchanged"},
      {Defect::k_transposed, "k_transposed"},
      {Defect::v_transposed, "v_transposed"}};
  // A sixteenth of the named defects and a 64th of the others here, all in ci/nightly.
  std::size_t named = 0, unnamed = 0;
  for (const fixtures::DefectRecord& record : fixtures::defects()) {
    const auto known = expected.find(record.defect);
    const bool is_named = known != expected.end();
    if (!attest::testing::is_turn(is_named ? named++ : unnamed++, is_named ? 16 : 64)) continue;
    const std::set<std::string> wanted =
        known == expected.end() ? std::set<std::string>() : std::set{known->second};
    INFO(record.name);
    if (fixtures::in_long_problems_alone(record.defect)) continue;  // it fails on no case here
    const attest_kernel& kernel = fixtures::defective_kernel(record.defect);
    CHECK(names_of(kernel, first_failure(kernel)) == wanted);
  }
}

// The class is for masks without lengths, and the first failure of the loop above may have them.
TEST_CASE("a kernel that takes either of two masks is named", "[signature]") {
  const attest_kernel& kernel = fixtures::defective_kernel(Defect::window_or_boolean);
  const Law& law = find_law("reference_forward");
  const Case found{Problem::parse("hq=2,sq=9,sk=12,d=8,mask=window_2_1+random_50_1"),
                   Values::normal, 1, 1};
  REQUIRE(fails(law.check(kernel, found)));
  const Case shrunk = shrink(found, [&](const Case& c) { return fails(law.check(kernel, c)); });
  CHECK(names_of(kernel, {found, shrunk}) == std::set<std::string>{"either_mask"});
}

}  // namespace
}  // namespace attest::proptest
