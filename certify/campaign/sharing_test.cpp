// A campaign shared among threads, runs and machines gives what one thread gives in one go.
#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "certify/audit/seal.hpp"
#include "certify/campaign/campaign.hpp"
#include "certify/campaign/merge.hpp"
#include "certify/certificate.hpp"
#include "certify/testing/schema.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "fixtures/defects/defect.hpp"

namespace attest::certify {
namespace {

using fixtures::Defect;

void ignore(std::uint64_t, std::uint64_t) {}

// Kernels that take no published model: small cases alone.
const attest_kernel& small(Defect defect) {
  static std::map<Defect, attest_kernel> kernels;
  attest_kernel& kernel = kernels[defect] = fixtures::defective_kernel(defect);
  kernel.description.max_head_dim = 16;
  return kernel;
}

Registry registry() {
  Registry all;
  for (const Defect defect : {Defect::none, Defect::dv_halved, Defect::window_off_by_one}) {
    all.add(&small(defect));
  }
  return all;
}

nlohmann::json without_times(const CampaignOptions& options,
                             const std::vector<CampaignResult>& results, const Journal* journal) {
  nlohmann::json object = certificate(registry(), options, results, journal);
  object.erase("timings");
  return object;
}

nlohmann::json certified(const CampaignOptions& options, Journal* journal = nullptr) {
  std::vector<CampaignResult> results;
  const Registry all = registry();
  for (const attest_kernel* kernel : all.kernels()) {
    results.push_back(run_campaign(*kernel, options, ignore, {nullptr, journal}));
  }
  return without_times(options, results, journal);
}

// Few cases, for they are run several times.
CampaignOptions few() {
  CampaignOptions options;
  options.cases = attest::testing::is_nightly() ? 6 : 2;
  options.seed = 3;
  return options;
}

TEST_CASE("jobs: the number of threads changes no byte", "[sharing]") {
  CampaignOptions options = few();
  const std::string one = certified(options).dump();
  options.jobs = 4;
  CHECK(certified(options).dump() == one);
}

TEST_CASE("merging: shards give what the whole gives", "[sharing]") {
  constexpr std::uint32_t kShards = 3;
  const CampaignOptions whole = few();
  std::vector<std::string> paths;
  for (std::uint32_t index = 1; index <= kShards; ++index) {
    CampaignOptions options = whole;
    options.shard = {index, kShards};
    Journal journal;
    nlohmann::json part = certified(options, &journal);
    part["timings"]["seconds"]["broken/dv_halved"] = 2;
    CHECK(part.at("kernels").at(0).at("verdict") == "shard_passed");
    paths.push_back("sharing_test_" + std::to_string(index) + ".json");
    seal(part);
    std::ofstream(paths.back()) << part.dump();
  }
  Journal journal;
  const MergedCampaign merged = merge_shards(paths, journal);
  const std::size_t known = journal.records().size();
  CHECK(merged.kernels.size() == 3);
  CHECK(merged.seconds.at("broken/dv_halved") == 2 * kShards);
  const nlohmann::json alone = certified(whole);
  CHECK(certified(merged.options, &journal).dump() == alone.dump());
  CHECK(journal.records().size() == known);  // nothing ran again

  const auto rewritten = [&](const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json object = nlohmann::json::parse(std::ifstream(paths[1]));
    change(object);
    seal(object);
    std::ofstream("sharing_test_other.json") << object.dump();
    return std::vector<std::string>{paths[0], "sharing_test_other.json", paths[2]};
  };
  // Other processors of one kind are named, all of them.
  Journal elsewhere;
  merge_shards(rewritten([](auto& o) {
                 o["host"]["processor"] = "Another";
                 o["host"]["threads"] = 96;
                 o["host"]["extensions"] = {"fma"};
               }),
               elsewhere);
  nlohmann::json merged_there = certified(merged.options, &elsewhere);
  std::set<std::string> processors{alone.at("host").at("processor").get<std::string>(), "Another"};
  processors.erase("");
  CHECK(merged_there["host"]["processors"] == nlohmann::json(processors));
  check_against(merged_there["host"],
                nlohmann::json::parse(std::ifstream(ATTEST_SCHEMA))["properties"]["host"]);
  merged_there["host"].erase("processors");
  CHECK(merged_there == alone);

  const auto refused = [](const std::vector<std::string>& files, const char* why) {
    Journal fresh;
    INFO(why);
    CHECK_THROWS_WITH(merge_shards(files, fresh), Catch::Contains(why));
  };
  refused({paths[0], paths[2]}, "shard 2/3 is missing");
  refused({paths[0], paths[1], paths[1]}, "are both shard 2/3");
  refused({"absent.json"}, "cannot read 'absent.json'");
  refused({"."}, "it is a directory");
  refused(rewritten([](auto& o) { o["journal"]["campaign"]["seed"] = 4; }), "its seed is 4, not 3");
  refused(rewritten([](auto& o) { o["interrupted"] = true; }), "was interrupted");
  refused(rewritten([](auto& o) { o["journal"] = nullptr; }), "not the certificate of a shard");
  refused(rewritten([](auto& o) { o["schema"] = "x"; }), "no certificate");
  refused(rewritten([](auto& o) { o["journal"]["campaign"]["shard"] = "2/4"; }), "of 3");
  const std::string both = "'sharing_test_1.json' ran with host.";
  refused(rewritten([](auto& o) { o["host"]["cpu_target"] = "AVX2"; }),
          (both + "cpu_target none, 'sharing_test_other.json' with AVX2: ").c_str());
  refused(rewritten([](auto& o) { o["host"]["machine"] = "aarch64"; }),
          "'sharing_test_other.json' with aarch64: built-in kernels and bounds depend on it");
  nlohmann::json changed = nlohmann::json::parse(std::ifstream(paths[1]));
  seal(changed);
  changed["exit_code"] = 7;
  std::ofstream("sharing_test_other.json") << changed.dump();
  refused({paths[0], "sharing_test_other.json", paths[2]}, "was changed after it was made");
  changed.erase("sha256");
  std::ofstream("sharing_test_other.json") << changed.dump();
  refused({paths[0], "sharing_test_other.json", paths[2]}, "has no SHA-256 of its own");
  for (const std::string& path : paths) std::remove(path.c_str());
  std::remove("sharing_test_other.json");
}

TEST_CASE("shards that are merged early list one mistake once", "[sharing]") {
  constexpr std::uint32_t kShards = 4;
  const attest_kernel& kernel = small(Defect::dv_halved);
  REQUIRE(run_campaign(kernel, few(), ignore).findings.size() == 1);
  std::vector<ShardCertificate> parts;
  std::size_t findings = 0;
  for (std::uint32_t index = 1; index < kShards; ++index) {
    CampaignOptions options = few();
    options.shard = {index, kShards};
    Journal journal;
    const CampaignResult part = run_campaign(kernel, options, ignore, {nullptr, &journal});
    findings += part.findings.size();
    nlohmann::json object = certificate(registry(), options, {part}, &journal);
    seal(object);
    parts.push_back({"part", object.dump()});
  }
  REQUIRE(findings > 1);
  Journal journal;
  merge_shards(parts, Shards::given, journal);
  const CampaignResult early = run_campaign(kernel, few(), ignore, {[] { return true; }, &journal});
  CHECK(early.interrupted);
  REQUIRE(early.findings.size() == 1);
  CHECK_FALSE(early.findings.front().also.empty());
}

TEST_CASE("a shard that finds nothing passes, whatever it holds", "[sharing]") {
  CampaignOptions options = few();
  options.law = "uniform_probe";
  options.shard = {100, 100};  // no check at all
  const CampaignResult empty = run_campaign(small(Defect::none), options, ignore);
  CHECK(empty.checks == 0);
  CHECK(empty.cases == 0);
  CHECK(empty.planned_cases == 0);
  CHECK(outcome(empty) == "shard_passed");
  CHECK(exit_code({empty}) == 0);
  CampaignResult found = empty;
  found.verdict = Verdict::violated;
  found.findings.emplace_back();
  CHECK(outcome(found) == "violated");
  CHECK(exit_code({empty, found}) == 1);
}

TEST_CASE("an interrupted campaign says so and goes on where it ended", "[sharing]") {
  const CampaignOptions options = few();
  const attest_kernel& kernel = small(Defect::none);
  const auto nothing = [] { return false; };
  const CampaignResult whole = run_campaign(kernel, options, ignore, {nothing, nullptr});
  Journal journal;
  std::atomic<std::uint64_t> asked{0};
  const std::uint64_t questions = whole.checks / 2;
  const CampaignResult part =
      run_campaign(kernel, options, ignore, {[&] { return ++asked > questions; }, &journal});
  CHECK(part.interrupted);
  CHECK(part.checks > 0);
  CHECK(part.checks < whole.checks);
  CHECK(part.cases < part.planned_cases);
  CHECK(part.planned_cases == whole.cases);
  CHECK(whole.planned_cases == whole.cases);
  CHECK(outcome(part) == "incomplete");
  REQUIRE_FALSE(part.gaps.empty());
  CHECK(part.gaps.front().rfind("interrupted after ", 0) == 0);
  CHECK(exit_code({part}) == 3);
  CHECK(without_times(options, {part}, nullptr).at("interrupted") == true);
  const std::size_t known = journal.records().size();
  CHECK(known == part.checks);
  const CampaignResult rest = run_campaign(kernel, options, ignore, {nothing, &journal});
  CHECK(without_times(options, {rest}, nullptr) == without_times(options, {whole}, nullptr));
}

}  // namespace
}  // namespace attest::certify
