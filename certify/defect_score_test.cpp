#include "certify/defect_score.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "certify/published_rules.hpp"
#include "core/testing/catch.hpp"
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

TEST_CASE("a kernel without a defect is not caught", "[defect_score]") {
  const DefectScore none = scored(Defect::none);
  CHECK_FALSE(none.caught);
  CHECK(none.cases == 60);
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
  constexpr int kCases = 5;
  const DefectScore score =
      score_defect({&fixtures::defective_kernel(Defect::none), "sq=1,d=1"}, plain.kernels(),
                   CampaignOptions(), [&asked] { return ++asked > kCases; });
  CHECK(score.interrupted);
  CHECK(score.kernel == "fixtures/correct");
  CHECK(score.cases == kCases);
  CHECK(score.accepted.empty());
}

TEST_CASE("the corpus is whole and every entry says what exposes it", "[defect_score]") {
  const auto corpus = fixtures::defect_corpus();
  CHECK(corpus.size() == 81);
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
