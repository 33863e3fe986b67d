#include "certify/campaign/campaign.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "certify/certificate.hpp"
#include "certify/findings/shrunk_finding.hpp"
#include "certify/plan/coverage.hpp"
#include "certify/report/comparison.hpp"
#include "certify/report/html/html.hpp"
#include "certify/report/junit.hpp"
#include "certify/worker/conduct/fault.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "cpu/register.hpp"
#include "fixtures/register.hpp"

namespace attest::certify {
namespace {

CampaignResult small_campaign(const attest_kernel& kernel, std::uint64_t cases = 4) {
  CampaignOptions options;
  options.cases = cases;
  options.shapes = Shapes::none;
  return run_campaign(kernel, options, [](std::uint64_t, std::uint64_t) {});
}

// Kernels that take no published model: small cases alone.
attest_kernel without_models(attest_kernel kernel) {
  kernel.description.max_head_dim = 16;
  return kernel;
}

attest_status always_failed(const void*, const attest_forward_args*) { return ATTEST_FAILED; }
attest_status always_unsupported(const void*, const attest_forward_args*) {
  return ATTEST_UNSUPPORTED;
}

attest_kernel fake(attest_status (*forward)(const void*, const attest_forward_args*)) {
  attest_kernel kernel = fixtures::defective_kernel(fixtures::Defect::none);
  kernel.description.name = "fake";
  kernel.description.directions = ATTEST_FORWARD;
  kernel.description.features &= ~std::uint32_t{ATTEST_DLSE};  // an input of backward
  kernel.forward = forward;
  return kernel;
}

attest_status refuses_groups(const void*, const attest_forward_args* args) {
  static const attest_kernel good = fixtures::defective_kernel(fixtures::Defect::none);
  if (args->problem->num_heads_q != args->problem->num_heads_kv) {
    std::snprintf(args->message, args->message_bytes, "no groups");
    return ATTEST_UNSUPPORTED;
  }
  return good.forward(good.self, args);
}

attest_status plain_forward(const void*, const attest_forward_args* args) {
  static const attest_kernel good = fixtures::defective_kernel(fixtures::Defect::none);
  return good.forward(good.self, args);
}

TEST_CASE("the worst error is that of the failure, where there is one", "[campaign]") {
  const auto worst_of = [](fixtures::Defect defect) {
    return small_campaign(without_models(fixtures::defective_kernel(defect)));
  };
  const CampaignResult broken = worst_of(fixtures::Defect::missing_rescale);
  CHECK(broken.worst.at("O").ratio > 1);
  CHECK_FALSE(broken.worst.at("O").problem.empty());
  const CampaignResult sound = worst_of(fixtures::Defect::none);
  CHECK(sound.worst.at("O").ratio > 0);
  CHECK(sound.worst.at("O").ratio <= 1);
}

TEST_CASE("gaps: what is missing for a certificate", "[campaign]") {
  attest_description description{};
  description.dtypes = 1u << ATTEST_F32;
  description.features = ATTEST_GQA;
  CampaignResult whole;
  whole.verdict = Verdict::passed;
  whole.exercised = {{"f32", 3}, {"gqa", 1}};
  whole.laws["first"].passed = 3;
  LawCount& beyond = whole.laws["asks for what is not claimed"];
  beyond.unsupported = beyond.not_claimed = 3;
  const auto judged = [&](CampaignResult result) {
    result.gaps = gaps_of(description, result);
    return result;
  };
  const auto require_gap = [&](const CampaignResult& result, const std::string& gap) {
    const CampaignResult got = judged(result);
    REQUIRE(got.gaps.size() == 1);
    CHECK(got.gaps[0] == gap);
    CHECK(outcome(got) == "incomplete");
    CHECK(exit_code({got}) == 3);
  };
  CHECK(judged(whole).gaps.empty());
  CHECK(outcome(judged(whole)) == "certified");
  CampaignResult small = whole;
  small.shapes = Shapes::none;
  require_gap(small, "without the shapes of published models (--shapes none)");
  CHECK(exit_code({judged(whole)}) == 0);

  CampaignResult result = whole;
  result.exercised.erase("gqa");
  require_gap(result, "claimed, never exercised: gqa");
  result.chosen_law = "first";  // one law claims nothing about features
  CHECK(outcome(judged(result)) == "law_holds");
  CHECK(exit_code({judged(result)}) == 0);
  result.refused = {{"refused although claimed", 3, "attest check --kernel K"},
                    {"refused although claimed; it says: no", 1, "attest check --kernel L"}};
  require_gap(result, "refused in 4 checks what it claims, first: attest check --kernel K");

  for (const LawCount& nowhere :
       {LawCount{0, 2, 0, 0, 0, 0}, LawCount{0, 0, 2, 0, 0, 1}, LawCount{0, 1, 2, 0, 0, 2},
        LawCount{0, 0, 0, 1, 0, 0}, LawCount{}}) {
    result = whole;
    result.laws["second"] = nowhere;
    require_gap(result, "no case counted for the law second");
  }
  result = whole;
  result.verdict = Verdict::violated;
  result.exercised.clear();
  CHECK(outcome(judged(result)) == "violated");
  CHECK(exit_code({judged(result)}) == 1);
}

TEST_CASE("a kernel that refuses some of what it claims is not certified", "[campaign]") {
  CampaignOptions options;
  options.cases = 8;
  options.shapes = Shapes::none;
  options.law = "reference_forward";
  const auto none = [](std::uint64_t, std::uint64_t) {};
  const CampaignResult good = run_campaign(fake(plain_forward), options, none);
  CHECK(outcome(good) == "law_holds");
  const CampaignResult result = run_campaign(fake(refuses_groups), options, none);
  CHECK(result.verdict == Verdict::passed);
  REQUIRE(result.refused.size() == 1);  // one reason, however many checks
  CHECK(result.refused.front().message == "refused although claimed; it says: no groups");
  CHECK(result.refused.front().checks > 1);
  CHECK(result.refused.front().example.rfind("attest check --kernel fake --problem ", 0) == 0);
  CHECK(outcome(result) == "incomplete");
  CHECK(exit_code({result}) == 3);
}

constexpr std::uint64_t kFewCases = 20;

// A seed whose first cases do not exercise all that the kernel claims.
std::uint64_t seed_with_gaps(const attest_description& description) {
  for (std::uint64_t seed = 1;; ++seed) {
    CampaignResult drawn;
    drawn.exercised["lse"] = 1;
    for (std::uint64_t index = 0; index < kFewCases; ++index) {
      const proptest::Case c = proptest::generate(description, proptest::Tier::smoke, seed, index);
      for (const std::string& word : exercised_by(c.problem, description.features)) {
        ++drawn.exercised[word];
      }
    }
    if (!unexercised(description, drawn).empty()) return seed;
  }
}

TEST_CASE("a tier adds cases for what its own have not met", "[campaign]") {
  CampaignOptions options;
  const auto none = [](std::uint64_t, std::uint64_t) {};
  attest_kernel kernel = without_models(fake(plain_forward));
  kernel.description.dtypes = 1u << ATTEST_F32;
  kernel.description.features &= ATTEST_GQA | ATTEST_CAUSAL_TOP_LEFT | ATTEST_SOFTCAP;
  attest_limits limits{};  // without the long problems, for time
  limits.struct_size = sizeof(limits);
  limits.seqlen_q.most = limits.seqlen_k.most = 256;
  kernel.description.limits = &limits;
  options.seed = seed_with_gaps(kernel.description);
  INFO("seed " << options.seed);
  const CampaignResult whole = run_campaign(kernel, options, none);
  INFO((whole.gaps.empty() ? "" : whole.gaps.front()));
  CHECK(outcome(whole) == "certified");
  options.cases = kFewCases;  // the same number and no more
  const CampaignResult exact = run_campaign(kernel, options, none);
  CHECK(outcome(exact) == "incomplete");
  CHECK(exact.cases < whole.cases);
}

TEST_CASE("a good kernel is certified and a broken one is not", "[campaign]") {
  Registry registry;
  register_cpu(registry);
  register_fixtures(registry);
  const CampaignResult good = small_campaign(registry.find("cpu/flash2"), 10);
  CHECK(good.verdict == Verdict::passed);
  CHECK(good.findings.empty());
  for (const char* word : {"f32", "bf16", "causal_bottom_right", "lse"}) {
    INFO(word);
    CHECK(good.exercised.count(word) == 1);
  }
  // Ten cases do not meet all that it claims: nothing failed, but it is not certified.
  CHECK(outcome(good) == "incomplete");
  CHECK(exit_code({good}) == 3);
  const CampaignResult bad = small_campaign(registry.find("broken/row_sum_off"));
  CHECK(bad.verdict == Verdict::violated);
  CHECK(exit_code({good, bad}) == 1);
  REQUIRE_FALSE(bad.findings.empty());
  const Finding& finding = bad.findings.front();
  CHECK(finding.shrunk.problem.visible_pairs() <= finding.found.problem.visible_pairs());
  CHECK(reproduce_line(bad.kernel, finding.law, finding.shrunk).rfind("attest check --kernel", 0) ==
        0);
}

TEST_CASE("the loss gradient is certified by its own laws, a broken one is not", "[campaign]") {
  Registry registry;
  register_cpu(registry);
  register_fixtures(registry);
  const CampaignResult good = small_campaign(registry.find("cpu/loss_gradient"));
  CHECK(good.verdict == Verdict::passed);
  for (const auto& [law, count] : good.laws) {
    INFO(law);
    CHECK(count.passed > 0);
    CHECK(count.unsupported == 0);
  }
  CHECK(good.laws.size() == 4);
  CHECK(good.worst.count("dX") + good.worst.count("dY") == 2);
  const CampaignResult bad = small_campaign(registry.find("broken/loss_delta_omitted"));
  CHECK(bad.verdict == Verdict::violated);
  REQUIRE_FALSE(bad.findings.empty());
  // One row has one weight, 1, and dX = 0; without delta it is not.
  CHECK(bad.findings.front().shrunk.problem.seqlen_k == 1);
  CHECK(bad.findings.front().shrunk.problem.head_dim_v == 1);
  // A law that says nothing about a kernel proves nothing of it.
  CampaignOptions other;
  other.cases = 1;
  other.law = "reference_forward";
  const CampaignResult none =
      run_campaign(registry.find("cpu/loss_gradient"), other, [](std::uint64_t, std::uint64_t) {});
  CHECK(exit_code({none}) == 3);
}

TEST_CASE("products of pairs are refused where their casts are not declared", "[campaign]") {
  Registry registry;
  register_cpu(registry);
  const attest_kernel& declared = registry.find("cpu/flash2_bf16");
  attest_kernel undeclared = declared;
  undeclared.description.numerics.p_cast = 0;
  CampaignOptions options;
  options.cases = 40;
  options.law = "reference_forward";
  const auto verdict = [&](const attest_kernel& kernel) {
    return run_campaign(kernel, options, [](std::uint64_t, std::uint64_t) {}).verdict;
  };
  CHECK(verdict(declared) != Verdict::violated);
  CHECK(verdict(undeclared) == Verdict::violated);
}

TEST_CASE("a kernel that refuses everything proves nothing", "[campaign]") {
  const CampaignResult result = small_campaign(fake(always_unsupported));
  CHECK(result.passed() == 0);
  CHECK_FALSE(result.refused.empty());
  CHECK(exit_code({result}) == 3);
}

TEST_CASE("a campaign of vacuous cases proves nothing", "[campaign]") {
  const attest_kernel kernel = fake(plain_forward);
  CampaignOptions options;
  options.cases = 1;
  options.law = "uniform_probe";  // with one key it has no content
  const auto keys = [&](std::uint64_t seed) {
    return proptest::generate(kernel.description, options.tier, seed, 0).problem.seqlen_k;
  };
  while (keys(options.seed) != 1) ++options.seed;
  const CampaignResult result = run_campaign(kernel, options, [](std::uint64_t, std::uint64_t) {});
  CHECK(result.passed() == 0);
  CHECK(result.vacuous() == 1);
  CHECK(result.verdict == Verdict::vacuous);
  CHECK(exit_code({result}) == 3);
}

// A kernel may declare arithmetic so coarse that its bounds let every decoy pass.
TEST_CASE("a campaign so flat that every decoy passes is vacuous", "[campaign]") {
  attest_kernel kernel = fake(plain_forward);
  kernel.description.max_head_dim = 16;
  CampaignOptions options;
  options.cases = 8;
  options.law = "reference_forward";
  const CampaignResult sharp = run_campaign(kernel, options, [](std::uint64_t, std::uint64_t) {});
  CHECK(sharp.verdict == Verdict::passed);
  kernel.description.numerics.input_roundoff = 0.5;
  kernel.description.numerics.exp_ulps = 0x1p24;
  const CampaignResult flat = run_campaign(kernel, options, [](std::uint64_t, std::uint64_t) {});
  CHECK(flat.vacuous() > flat.passed());  // a row with one key is exact whatever was declared
  CHECK(flat.findings.empty());
  CHECK(outcome(flat) == "vacuous");
  CHECK(exit_code({flat}) == 3);
}

TEST_CASE("what is not claimed is not a law without content", "[campaign]") {
  attest_kernel kernel = fake(plain_forward);
  kernel.description.features = 0;
  CampaignOptions options;
  options.cases = 10;
  options.shapes = Shapes::none;
  for (const char* law : {"linearity_in_do", "masked_key_independence", "split_merge"}) {
    INFO(law);
    options.law = law;
    const CampaignResult result =
        run_campaign(kernel, options, [](std::uint64_t, std::uint64_t) {});
    CHECK(result.laws.at(law).not_claimed == *options.cases);
  }
}

TEST_CASE("an improbable result is repeated with another seed", "[campaign]") {
  const attest_kernel kernel = fixtures::defective_kernel(fixtures::Defect::none);
  std::vector<std::uint64_t> seeds;
  const auto law = [&](Verdict then) {
    return proptest::Law{
        "fake", "fake", [&seeds, then](const attest_kernel&, const auto& c) {
          seeds.push_back(c.seed);
          return proptest::LawResult{seeds.size() == 1 ? Verdict::improbable : then, "why", {}};
        }};
  };
  const auto checked = [&](Verdict then) {
    seeds.clear();
    proptest::Case c{Problem::parse("sq=2,d=1"), proptest::Values::normal, 7, 1};
    proptest::LawResult result = check_repeating(law(then), kernel, c);
    REQUIRE(seeds.size() == 2);
    CHECK(seeds[0] == 7);
    CHECK(seeds[1] != 7);
    const bool second_stands = then != Verdict::passed;
    CHECK(c.seed == seeds[second_stands ? 1 : 0]);
    return result;
  };
  CHECK(checked(Verdict::passed).verdict == Verdict::improbable);
  CHECK(checked(Verdict::violated).verdict == Verdict::violated);
  CHECK(checked(Verdict::violated).message == "why");
  CHECK(checked(Verdict::crashed).verdict == Verdict::crashed);
  const proptest::LawResult twice = checked(Verdict::improbable);
  CHECK(twice.verdict == Verdict::violated);
  CHECK(twice.message == "improbable twice: why");
}

TEST_CASE("what was claimed and never exercised is listed", "[campaign]") {
  attest_description description{};
  description.dtypes = (1u << ATTEST_F32) | (1u << ATTEST_F16);
  description.features = ATTEST_GQA | ATTEST_SOFTCAP;
  CampaignResult result;
  result.exercised = {{"f32", 3}, {"softcap", 1}};
  CHECK(unexercised(description, result) == std::vector<std::string>{"f16", "gqa"});
}

TEST_CASE("a kernel that says it failed has one finding that says so", "[campaign]") {
  const CampaignResult result = small_campaign(fake(always_failed));
  CHECK(result.verdict == Verdict::violated);
  CHECK(exit_code({result}) == 1);
  REQUIRE(result.findings.size() == 1);
  CHECK(worker::kind_in(result.findings.front().message) == worker::FaultKind::failed);
}

TEST_CASE("what is not drawn for a device is listed as not covered", "[campaign]") {
  attest_kernel kernel = fake(always_failed);
  CHECK(small_campaign(kernel).not_claimed.count(proptest::kHugeOnDevice) == 0);
  kernel.description.device = ATTEST_CUDA;
  CHECK(small_campaign(kernel).not_claimed.at(proptest::kHugeOnDevice) == 0);
}

TEST_CASE("certificates are equal for equal seeds but for the timings", "[certificate]") {
  Registry all, registry;
  register_cpu(all);
  const attest_kernel kernel = without_models(all.find("cpu/standard"));
  registry.add(&kernel);
  CampaignOptions options;
  options.cases = 2;
  const auto made = [&](std::uint64_t seed) {
    options.seed = seed;
    auto object = certificate(registry, options,
                              {run_campaign(kernel, options, [](std::uint64_t, std::uint64_t) {})});
    object.erase("timings");
    return object.dump();
  };
  const std::string first = made(5);
  CHECK(first == made(5));
  CHECK(first != made(6));
}

TEST_CASE("a certificate tells the roundoffs that each type of tensors brings", "[certificate]") {
  attest_description d{};
  d.dtypes = 1U << ATTEST_F64 | 1U << ATTEST_BF16 | 1U << ATTEST_F16;
  d.numerics.p_cast = d.numerics.dkv_accumulator = ATTEST_INPUT_DTYPE;
  d.numerics.exp_ulps_of[ATTEST_BF16] = 839;
  d.numerics.operand_roundoff = 0x1p-11;
  d.numerics.flushes_subnormals = 1;
  const nlohmann::json numerics = description_json(d).at("numerics");
  CHECK(numerics.at("p_roundoff") ==
        nlohmann::json{{"f64", 0.0}, {"bf16", 0x1p-8}, {"f16", 0x1p-11}});
  CHECK(numerics.at("dkv_roundoff") ==
        nlohmann::json{{"f64", 0.0}, {"bf16", 0x1p-8}, {"f16", 0x1p-11}});
  CHECK(numerics.at("exp_ulps") == nlohmann::json{{"f64", 2.0}, {"bf16", 839.0}, {"f16", 2.0}});
  CHECK(numerics.at("operand_roundoff") == 0x1p-11);
  CHECK(numerics.at("flushes_subnormals") == true);
  CHECK(numerics.at("accumulator_roundoff") ==
        nlohmann::json{{"f64", 0x1p-53}, {"bf16", 0x1p-24}, {"f16", 0x1p-24}});
}

TEST_CASE("a finding's case is the one that the kernel was called with", "[findings]") {
  attest_limits limits{};
  limits.struct_size = sizeof limits;
  limits.only = ATTEST_ONLY_CAUSAL;
  attest_kernel causal = fixtures::defective_kernel(fixtures::Defect::last_key_dropped);
  causal.description.limits = &limits;
  const proptest::Law& law = proptest::find_law("one_hot_probe");
  Finding finding;
  finding.law = law.name;
  finding.found = {Problem::parse("sq=7,sk=7,d=16"), proptest::Values::integers, 3, 1};
  finding.message = law.check(causal, finding.found).message;
  shrink_finding(causal, finding, {finding.found}, [] { return false; });
  const Problem& shown = finding.shrunk.problem;
  INFO(shown.to_string());
  CHECK(shown.mask.window_right == 0);
  CHECK(shown.seqlen_q > 0);
  const proptest::LawResult again = law.check(causal, finding.shrunk);
  CHECK(again.verdict == Verdict::violated);
  CHECK(again.message == finding.message);
  CHECK(proptest::problem_of_last_run()->to_string() == shown.to_string());
}

// split_merge makes one row and one key of none, and speaks of them.
TEST_CASE("a finding of no row or key has those that the law makes", "[findings]") {
  const attest_kernel& kernel = fixtures::defective_kernel(fixtures::Defect::lse_base_two);
  Finding finding;
  finding.law = "split_merge";
  finding.found = {Problem::parse("sq=0,sk=9,d=4"), proptest::Values::normal, 3, 1};
  finding.message = proptest::find_law(finding.law).check(kernel, finding.found).message;
  shrink_finding(kernel, finding, {finding.found}, [] { return false; });
  const Problem& shrunk = finding.shrunk.problem;
  INFO(shrunk.to_string());
  CHECK(shrunk.seqlen_q > 0);
  CHECK(shrunk.seqlen_k > 0);
}

TEST_CASE("certificates have every required field of the schema", "[certificate]") {
  Registry registry;
  register_fixtures(registry);
  CampaignOptions options;
  options.cases = 2;
  const auto object = certificate(registry, options,
                                  {run_campaign(registry.find("broken/dv_halved"), options,
                                                [](std::uint64_t, std::uint64_t) {})});
  const auto schema = nlohmann::json::parse(std::ifstream(ATTEST_SCHEMA));
  const auto require_fields = [](const nlohmann::json& part, const nlohmann::json& of) {
    for (const auto& field : of.at("required")) {
      INFO(field);
      CHECK(part.contains(field.get<std::string>()));
    }
    for (const auto& [key, value] : part.items()) {
      INFO(key);
      CHECK(of.at("properties").contains(key));
    }
  };
  require_fields(object, schema);
  require_fields(object.at("host"), schema.at("properties").at("host"));
  require_fields(object.at("build"), schema.at("properties").at("build"));
  const auto& kernel_schema = schema.at("properties").at("kernels").at("items");
  require_fields(object.at("kernels").at(0), kernel_schema);
  const auto& places = kernel_schema.at("properties").at("ran").at("enum");
  CHECK(std::count(places.begin(), places.end(), object.at("kernels").at(0).at("ran")) == 1);
  require_fields(object.at("kernels").at(0).at("coverage"),
                 kernel_schema.at("properties").at("coverage"));
  require_fields(object.at("kernels").at(0).at("findings").at(0),
                 kernel_schema.at("properties").at("findings").at("items"));
  // The renderers of certificates find every field that they need.
  CHECK_THAT(html_report(object), Catch::Contains("dv_halved"));
  CHECK_THAT(junit_report(object), Catch::Contains("dv_halved"));
  CHECK(compare_certificates(object, object).empty());
}

}  // namespace
}  // namespace attest::certify
