#include "certify/score/defect_score.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "certify/plan/plan.hpp"
#include "certify/score/published_rules.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "cpu/register.hpp"
#include "fixtures/defects/defect.hpp"

namespace attest::certify {
namespace {

using fixtures::Defect;

struct Plain {
  Registry registry;
  Plain() { register_cpu(registry); }
  PlainKernels kernels() const {
    return {registry.find("cpu/standard"), registry.find("cpu/loss_gradient")};
  }
};

DefectScore scored(Defect defect) {
  const Plain plain;
  return score_defect({&fixtures::defective_kernel(defect), "sq=1,d=1"}, plain.kernels(),
                      CampaignOptions(), [] { return false; });
}

TEST_CASE("a defect is caught, shrunk and let through by others' rules", "[defect_score]") {
  const DefectScore shifted = scored(Defect::lse_shifted);  // none of them looks at LSE
  REQUIRE(shifted.caught);
  CHECK(shifted.cases >= 1);
  CHECK(shifted.shrunk_to_few());
  CHECK(shifted.accepted.size() >= 3);
  const DefectScore zero = scored(Defect::zero_gradients);
  REQUIRE(zero.caught);
  CHECK(std::count(zero.accepted.begin(), zero.accepted.end(), "flash_attention") == 0);
  const nlohmann::json object = score_json({shifted, zero}, CampaignOptions());
  CHECK(object.at("caught") == 2);
  CHECK(object.at("all") == 2);
  CHECK(object.at("defects").at(0).at("law") == shifted.caught->law);
  CHECK(object.at("published_rules").at("allclose").at("accepts").get<int>() >= 1);
}

// Right, but for problems of one kind of sizes.
class WrongOnSome {
 public:
  WrongOnSome(const attest_kernel& right, const Problem& wrong)
      : right_(right), wrong_(wrong), kernel_(right) {
    kernel_.self = this;
    kernel_.workspace_bytes = nullptr;
    kernel_.forward = [](const void* self, const attest_forward_args* args) {
      return static_cast<const WrongOnSome*>(self)->forward(*args);
    };
  }
  const attest_kernel& kernel() const { return kernel_; }

 private:
  attest_status forward(const attest_forward_args& args) const {
    const attest_status status = right_.forward(right_.self, &args);
    const attest_problem& p = *args.problem;
    const bool same = p.batch == wrong_.batch && p.num_heads_q == wrong_.num_heads_q &&
                      p.seqlen_q == wrong_.seqlen_q && p.seqlen_k == wrong_.seqlen_k &&
                      p.head_dim_qk == wrong_.head_dim_qk && p.head_dim_v == wrong_.head_dim_v;
    constexpr int kNan = 0xff;
    if (same) std::memset(static_cast<char*>(args.O->data) + args.O->byte_offset, kNan, 2);
    return status;
  }

  const attest_kernel& right_;
  Problem wrong_;
  attest_kernel kernel_;
};

// Without published models and long problems, which take most of the time.
void keep_small(attest_description& description) {
  static const attest_limits limits = [] {
    attest_limits short_sequences{};
    short_sequences.struct_size = sizeof short_sequences;
    short_sequences.seqlen_q.most = short_sequences.seqlen_k.most = 256;
    return short_sequences;
  }();
  description.max_head_dim = 16;
  description.limits = &limits;
}

TEST_CASE("a defect that only a case for a pair of properties meets is caught", "[defect_score]") {
  attest_kernel right = fixtures::defective_kernel(Defect::none);
  right.description.directions = ATTEST_FORWARD;
  keep_small(right.description);
  right.description.dtypes = 1u << ATTEST_BF16;
  right.description.features &= ATTEST_GQA | ATTEST_CAUSAL_BOTTOM_RIGHT | ATTEST_CROSS_LENGTHS;
  CampaignOptions options;
  const std::vector<PlannedCase> plan = small_planned_cases(right.description, options);
  REQUIRE(plan.size() > generated_count(options));
  const WrongOnSome wrong(right, plan.back().c.problem);
  const Plain plain;
  const auto score = [&] {
    return score_defect({&wrong.kernel(), "sq=1,d=1"}, plain.kernels(), options,
                        [] { return false; });
  };
  const DefectScore found = score();
  REQUIRE(found.caught);
  CHECK(found.caught->position >= generated_count(options));
  CHECK(found.cases > generated_count(options));
  CHECK(reference_laws().count(found.caught->law) == 1);  // met before laws that call more often
  CHECK(found.planned_cases == plan.size());
  options.cases = generated_count(options);  // so many and no more
  CHECK_FALSE(score().caught);
}

TEST_CASE("a kernel without a defect is not caught", "[defect_score]") {
  attest_kernel right = fixtures::defective_kernel(Defect::none);
  keep_small(right.description);
  const Plain plain;
  CampaignOptions options;
  if (!attest::testing::is_nightly()) options.cases = 8;
  const DefectScore none =
      score_defect({&right, "sq=1,d=1"}, plain.kernels(), options, [] { return false; });
  CHECK_FALSE(none.caught);
  CHECK(none.cases == none.planned_cases);
  CHECK_FALSE(none.interrupted);
  CHECK_FALSE(none.shrunk_to_few());
  CHECK(score_json({none}, CampaignOptions()).at("caught") == 0);
}

TEST_CASE("what was shrunk is compared with the smallest documented input", "[defect_score]") {
  DefectScore score;
  score.smallest = "hq=2,hkv=1,sq=1,sk=513,d=2,dv=1,mask=causal_br";
  CHECK_FALSE(score.shrunk_to_smallest());  // not caught
  score.caught.emplace();
  const auto shrunk_to = [&](const char* problem) {
    score.caught->shrunk.problem = Problem::parse(problem);
    return std::pair{score.shrunk_to_few(), score.shrunk_to_smallest()};
  };
  CHECK(shrunk_to("hq=2,hkv=1,sq=1,sk=513,d=2,dv=1") == std::pair{false, true});
  CHECK(shrunk_to("sq=1,sk=2,d=1") == std::pair{true, true});
  CHECK(shrunk_to("sq=2,sk=2,d=1") == std::pair{true, false});
  for (const char* larger :
       {"b=2,sq=1,sk=513,d=1", "hq=3,hkv=1,sq=1,sk=513,d=1", "hq=2,sq=1,sk=513,d=1",
        "sq=2,sk=513,d=1", "sq=1,sk=514,d=1", "sq=1,sk=513,d=3,dv=1", "sq=1,sk=513,d=1,dv=2"}) {
    INFO(larger);
    CHECK(shrunk_to(larger) == std::pair{false, false});
  }
  const nlohmann::json object = score_json({score}, CampaignOptions());
  CHECK(object.at("shrunk_to_either") == 0);
  shrunk_to("sq=1,sk=513,d=1");
  CHECK(score_json({score}, CampaignOptions()).at("shrunk_to_documented") == 1);
  CHECK(score_json({score}, CampaignOptions()).at("shrunk_to_four_keys") == 0);
  CHECK(score_json({score}, CampaignOptions()).at("shrunk_to_either") == 1);
}

TEST_CASE("what was interrupted is not judged", "[defect_score]") {
  const Plain plain;
  int asked = 0;
  constexpr int kChecks = 5, kCases = 3;  // forward and backward on two, forward on the third
  const DefectScore score =
      score_defect({&fixtures::defective_kernel(Defect::none), "sq=1,d=1"}, plain.kernels(),
                   CampaignOptions(), [&asked] { return ++asked > kChecks; });
  CHECK(score.interrupted);
  CHECK(score.kernel == "fixtures/correct");
  CHECK(score.cases == kCases);
  CHECK(score.accepted.empty());
}

TEST_CASE("the corpus is whole and every entry says what exposes it", "[defect_score]") {
  const auto corpus = fixtures::defect_corpus();
  CHECK(corpus.size() == 229);
  for (const auto& entry : corpus) {
    CHECK(std::string(entry.kernel->description.name).rfind("broken/", 0) == 0);
    CHECK_FALSE(entry.smallest.empty());
  }
  CHECK(fixtures::correct_variants().size() == 2);
}

TEST_CASE("rules: what is exact passes, what is NaN or far off does not", "[defect_score]") {
  const Tensor exact("O", DType::f64, {{"n", 4, 0}});
  Tensor got("O", DType::f16, {{"n", 4, 0}});
  for (const PublishedRule& rule : published_rules()) {
    INFO(rule.name);
    CHECK(rule.accepts({"O", got, exact, got}));
    for (const double wrong : {1.0, std::nan("")}) {
      Tensor far = got;
      far.set(wrong, 2);
      CHECK_FALSE(rule.accepts({"O", far, exact, got}));
    }
  }
}

}  // namespace
}  // namespace attest::certify
