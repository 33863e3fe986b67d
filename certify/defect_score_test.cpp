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
  return score_defect({&fixtures::defective_kernel(defect), "two keys"}, plain.kernels(),
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
  CHECK_FALSE(none.shrunk_to_few());
  CHECK(score_json({none}, CampaignOptions()).at("caught") == 0);
}

TEST_CASE("the corpus is whole and every entry says what exposes it", "[defect_score]") {
  const auto corpus = fixtures::defect_corpus();
  CHECK(corpus.size() == 77);
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
