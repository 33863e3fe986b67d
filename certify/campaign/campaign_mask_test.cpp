#include "certify/campaign/campaign_mask.hpp"

#include <cstdio>
#include <fstream>

#include "certify/audit/seal.hpp"
#include "certify/campaign/campaign.hpp"
#include "certify/campaign/merge.hpp"
#include "certify/certificate.hpp"
#include "certify/plan/plan.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/defects/defect.hpp"
#include "proptest/laws/law.hpp"

namespace attest::certify {
namespace {

using fixtures::Defect;

void ignore(std::uint64_t, std::uint64_t) {}

// Removed when the test ends.
struct MaskFile {
  const char* path;
  MaskFile(const char* name, const char* text) : path(name) { write(text); }
  ~MaskFile() { std::remove(path); }
  MaskFile(const MaskFile&) = delete;
  MaskFile& operator=(const MaskFile&) = delete;
  void write(const char* text) const { std::ofstream(path) << text; }
};

constexpr const char* kPattern =
    R"({"shape": [5, 7], "row_offsets": [0, 1, 1, 3, 4, 6], "columns": [0, 1, 3, 6, 0, 6]})";

TEST_CASE("every case of a campaign on a mask has it", "[mask]") {
  const MaskFile file("campaign_mask_test.json", kPattern);
  const auto& description = fixtures::defective_kernel(Defect::none).description;
  for (const char* text :
       {"causal_br", "block_3x5_40_1", "pattern_campaign_mask_test.json", "documents_30x9_70x80"}) {
    CampaignOptions options;
    options.mask = parse_campaign_mask(text);
    const auto plan = planned_cases(description, options);
    CHECK(plan.size() == generated_count(options));  // no model shapes, no cases for pairs
    for (const PlannedCase& planned : plan) {
      const Problem& problem = planned.c.problem;
      INFO(problem.to_string());
      CHECK(problem.mask.to_string() == text);
      CHECK(planned.only.empty());
      if (!options.mask->shape) continue;
      CHECK(problem.seqlen_q == options.mask->shape->rows);
      CHECK(problem.seqlen_k == options.mask->shape->columns);
    }
  }
}

TEST_CASE("large masks have fewer sequences and heads", "[mask]") {
  const Problem problem = with_mask(Problem::parse("b=3,hq=8,hkv=4,sq=4,d=8"),
                                    parse_campaign_mask("documents_1000_1000"));
  CHECK(problem.batch == 1);
  CHECK(problem.num_heads_kv == 1);
  CHECK(problem.num_heads_q == 1);
}

TEST_CASE("masks that no campaign can have are refused", "[mask]") {
  const MaskFile malformed("campaign_mask_test.json", R"({"shape": [5, 7], "columns": [0]})");
  for (const char* text : {"lengths_3", "cu_3x5", "causl_br", "file_of_nothing.txt",
                           "pattern_campaign_mask_test.json", "nm_3_2_1"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_campaign_mask(text), InvalidProblem);
  }
  CHECK_THROWS_WITH(parse_campaign_mask("lengths_3"), Catch::Contains("belong to one batch"));
}

TEST_CASE("a kernel that claims no form of the mask is refused", "[mask]") {
  attest_kernel kernel = fixtures::defective_kernel(Defect::none);
  const auto with = [&](std::uint32_t features) {
    kernel.description.features = features;
    return &kernel;
  };
  const CampaignMask pairs = parse_campaign_mask("pairs_5_1"),
                     band = parse_campaign_mask("causal_br"),
                     blocks = parse_campaign_mask("block_16_50_1"),
                     drawn = parse_campaign_mask("random_50_1");
  CHECK_NOTHROW(require_form(*with(ATTEST_CSR_MASK), pairs));
  CHECK_NOTHROW(require_form(*with(ATTEST_BOOLEAN_MASK), pairs));
  CHECK_NOTHROW(require_form(*with(ATTEST_BLOCK_MASK), blocks));
  CHECK_NOTHROW(require_form(*with(ATTEST_CSR_MASK), blocks));
  CHECK_NOTHROW(require_form(*with(0), band));  // its laws say what is not covered
  CHECK_THROWS_WITH(require_form(*with(ATTEST_BLOCK_MASK), pairs),
                    Catch::Contains("it claims ATTEST_BLOCK_MASK"));
  CHECK_THROWS_WITH(require_form(*with(ATTEST_CSR_MASK), drawn), Catch::Contains("lists"));
  CHECK_THROWS_AS(require_form(*with(0), pairs), InvalidProblem);
}

CampaignOptions few(const char* mask) {
  CampaignOptions options;
  options.cases = 8;
  options.mask = parse_campaign_mask(mask);
  return options;
}

nlohmann::json certified(const attest_kernel& kernel, const CampaignOptions& options,
                         Journal* journal = nullptr) {
  Registry registry;
  registry.add(&kernel);
  return certificate(registry, options, {run_campaign(kernel, options, ignore, {{}, journal})},
                     journal);
}

TEST_CASE("a campaign on a mask is no certificate", "[mask]") {
  const attest_kernel& kernel = fixtures::defective_kernel(Defect::none);
  const nlohmann::json object = certified(kernel, few("block_3x5_40_1"));
  const nlohmann::json& result = object.at("kernels").at(0);
  CHECK(result.at("verdict") == "mask_holds");
  CHECK(result.at("mask") == "block_3x5_40_1");
  CHECK(object.at("exit_code") == 0);
  attest_kernel narrow = kernel;  // for time
  narrow.description.directions = ATTEST_FORWARD;
  narrow.description.dtypes = 1u << ATTEST_F32;
  CampaignOptions without = few("causal_br");
  without.mask.reset();
  CHECK(certified(narrow, without).at("kernels").at(0).at("mask").is_null());
}

TEST_CASE("a kernel is asked on a mask for what it claims alone", "[mask]") {
  attest_kernel kernel = fixtures::defective_kernel(Defect::none);
  kernel.description.directions = ATTEST_FORWARD;
  const CampaignResult forward = run_campaign(kernel, few("causal_br"), ignore);
  CHECK(forward.gaps.empty());
  CHECK(outcome(forward) == "mask_holds");
  kernel.description.features &= ~std::uint32_t{ATTEST_CAUSAL_BOTTOM_RIGHT};
  const CampaignResult unclaimed = run_campaign(kernel, few("causal_br"), ignore);
  REQUIRE(unclaimed.gaps.size() == 1);
  CHECK(unclaimed.gaps.front() == "no case with the mask met the reference");
  CHECK(exit_code({unclaimed}) == 3);
}

// Laws that have masks of their own, or none, say nothing of the campaign's mask.
TEST_CASE("laws that replace the mask do not count on it", "[mask]") {
  const attest_kernel& kernel = fixtures::defective_kernel(Defect::none);
  const CampaignResult result = run_campaign(kernel, few("block_3x5_40_1"), ignore);
  for (const proptest::Law& law : proptest::laws()) {
    const bool counts =
        proptest::concerns(law, kernel.description) && law.mask == proptest::MaskUse::kept;
    INFO(law.name);
    CHECK((result.laws.count(std::string(law.name)) > 0) == counts);
  }
  const CampaignResult nothing = run_campaign(kernel, few("pairs_0_1"), ignore);
  for (const auto& [law, count] : nothing.laws) {
    INFO(law);
    CHECK(count.passed == 0);
  }
  CHECK(outcome(nothing) != "mask_holds");
}

// The defect is about windows alone: what holds on one mask says nothing of others.
TEST_CASE("a defect of one mask passes on another", "[mask]") {
  const attest_kernel& kernel = fixtures::defective_kernel(Defect::window_off_by_one);
  const auto verdict = [&](const char* mask) {
    return std::string(outcome(run_campaign(kernel, few(mask), ignore)));
  };
  CHECK(verdict("window_3_2") == "violated");
  CHECK(verdict("block_3x5_40_1") == "mask_holds");
}

TEST_CASE("a kernel that does not take the mask holds nowhere", "[mask]") {
  attest_kernel kernel = fixtures::defective_kernel(Defect::none);
  kernel.description.features &= ~std::uint32_t{ATTEST_WINDOW};
  const CampaignResult result = run_campaign(kernel, few("window_3_2"), ignore);
  CHECK(outcome(result) != "mask_holds");
  CHECK(exit_code({result}) == 3);
}

TEST_CASE("a file that changes while kernels are certified on it is refused", "[mask]") {
  const MaskFile file("campaign_mask_test.json", kPattern);
  const CampaignMask mask = parse_campaign_mask("pattern_campaign_mask_test.json");
  CHECK_NOTHROW(require_unchanged(mask));
  CHECK_NOTHROW(require_unchanged(parse_campaign_mask("causal_br")));
  file.write(R"({"shape": [5, 7], "row_offsets": [0, 1, 1, 1, 1, 1], "columns": [0]})");
  CHECK_THROWS_WITH(require_unchanged(mask), Catch::Contains("was written again"));
}

TEST_CASE("a campaign ends before its first check where the mask's file has changed", "[mask]") {
  const MaskFile file("campaign_mask_test.json", kPattern);
  const CampaignOptions options = few("pattern_campaign_mask_test.json");
  file.write(R"({"shape": [5, 7], "row_offsets": [0, 1, 1, 1, 1, 1], "columns": [0]})");
  Journal journal;
  CHECK_THROWS_WITH(
      run_campaign(fixtures::defective_kernel(Defect::none), options, ignore, {{}, &journal}),
      Catch::Contains("was written again"));
  CHECK(journal.records().empty());
}

TEST_CASE("journals and shards of other masks are refused", "[mask]") {
  const MaskFile file("campaign_mask_test.json", kPattern);
  const attest_kernel& kernel = fixtures::defective_kernel(Defect::none);
  const char* of_file = "pattern_campaign_mask_test.json";
  const auto header = [&](const char* mask) { return campaign_header({&kernel}, few(mask)); };
  const nlohmann::json one = header(of_file);
  CHECK_NOTHROW(require_same_campaign(header(of_file), one, "here"));
  CHECK_THROWS_WITH(require_same_campaign(header("causal_br"), one, "here"),
                    Catch::Contains("its mask"));
  CampaignOptions without = few("causal_br");
  without.mask.reset();
  CHECK_THROWS_WITH(require_same_campaign(campaign_header({&kernel}, without), one, "here"),
                    Catch::Contains("its mask"));
  file.write(R"({"shape": [5, 7], "row_offsets": [0, 1, 1, 1, 1, 1], "columns": [0]})");
  CHECK_THROWS_WITH(require_same_campaign(header(of_file), one, "here"),
                    Catch::Contains("its mask"));

  std::vector<std::string> paths;
  for (const char* mask : {"causal_br", "causal_tl"}) {
    CampaignOptions options = few(mask);
    options.cases = 1;
    options.shard = {static_cast<std::uint32_t>(paths.size() + 1), 2};
    Journal journal;
    paths.push_back(std::string("campaign_mask_test_") + mask + ".json");
    nlohmann::json part = certified(kernel, options, &journal);
    seal(part);
    std::ofstream(paths.back()) << part.dump();
  }
  Journal journal;
  CHECK_THROWS_WITH(merge_shards(paths, journal), Catch::Contains("its mask"));
  for (const std::string& path : paths) std::remove(path.c_str());
}

}  // namespace
}  // namespace attest::certify
