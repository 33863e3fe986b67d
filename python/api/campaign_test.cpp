#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"
#include "python/api/attest_api.h"

namespace attest::python {
namespace {

using nlohmann::json;

// Takes no published model, so that its campaign is small; forward alone.
attest_kernel small_kernel(fixtures::Defect defect) {
  attest_kernel kernel = fixtures::defective_kernel(defect);
  kernel.description.max_head_dim = 16;
  kernel.description.directions = ATTEST_FORWARD;
  kernel.description.features &= ~std::uint32_t{ATTEST_DLSE};  // an input of backward
  return kernel;
}

const char* const kSmall = "cases=3 seed=2 jobs=2";

int certify(const attest_kernel& kernel, const char* options, const char* contract = nullptr) {
  return attest_certify(&kernel, contract, options, nullptr, nullptr);
}

json verdict_of(const json& certificate) { return certificate["kernels"][0]["verdict"]; }

TEST_CASE("a right kernel passes what a small campaign asks", "[python]") {
  const attest_kernel kernel = small_kernel(fixtures::Defect::none);
  CHECK(certify(kernel, "cases=6 only=reference_forward") == ATTEST_PASSED);
  const json certificate = json::parse(attest_text());
  CHECK(verdict_of(certificate) == "law_holds");
  CHECK(certificate["tier"] == "smoke");
  CHECK(certificate["kernels"][0]["findings"].empty());
  CHECK(certificate["kernels"][0]["not_seen"].size() == 4);
  CHECK(certify(kernel, kSmall) == ATTEST_NOTHING_PROVED);
  CHECK(verdict_of(json::parse(attest_text())) == "incomplete");
}

TEST_CASE("a finding is shown again", "[python]") {
  const attest_kernel kernel = small_kernel(fixtures::Defect::missing_rescale);
  REQUIRE(certify(kernel, kSmall) == ATTEST_REFUSED);
  const json certificate = json::parse(attest_text());
  CHECK(verdict_of(certificate) == "violated");
  const json finding = certificate["kernels"][0]["findings"][0], shrunk = finding["shrunk"];
  const std::string law = finding["law"], problem = shrunk["problem"], values = shrunk["values"];
  const std::string line = problem + " values=" + values +
                           " seed=" + std::to_string(shrunk["seed"].get<std::uint64_t>()) +
                           " threads=" + std::to_string(shrunk["threads"].get<int>());
  REQUIRE(attest_check(&kernel, nullptr, line.c_str(), law.c_str()) == ATTEST_REFUSED);
  const json again = json::parse(attest_text());
  for (const char* part : {"message", "signatures", "bound_term", "hints", "suspicions"}) {
    CHECK(again[part] == finding[part]);
  }
  const attest_kernel right = small_kernel(fixtures::Defect::none);
  CHECK(attest_check(&right, nullptr, line.c_str(), law.c_str()) == ATTEST_PASSED);
}

TEST_CASE("problems and the contract of the caller count", "[python]") {
  const attest_kernel kernel = small_kernel(fixtures::Defect::none);
  const char* const options = "cases=1 only=reference_forward problem=sq=3,d=4 problem=sq=4,d=8";
  CHECK(certify(kernel, options, "tensor_core") == ATTEST_PASSED);
  const json certificate = json::parse(attest_text());
  CHECK(certificate["problems"].size() == 2);
  const json& numerics = certificate["kernels"][0]["description"]["numerics"];
  CHECK(numerics["accumulation"] == "fused_blocks");
}

struct Patience {
  std::uint64_t most, told;
};

int lose_patience(void* self, std::uint64_t done, std::uint64_t total) {
  auto& patience = *static_cast<Patience*>(self);
  CHECK(done <= total);
  patience.told = done;
  return done >= patience.most ? 1 : 0;
}

TEST_CASE("a caller ends a campaign and gets what is known", "[python]") {
  const attest_kernel kernel = small_kernel(fixtures::Defect::none);
  Patience patience{3, 0};
  CHECK(attest_certify(&kernel, nullptr, "cases=20 jobs=1", lose_patience, &patience) ==
        ATTEST_NOTHING_PROVED);
  CHECK(patience.told == patience.most);
  const json certificate = json::parse(attest_text());
  CHECK(certificate["interrupted"] == true);
  CHECK(certificate["kernels"][0]["checks"]["made"] == patience.most);
}

int end_at_once(void*, std::uint64_t, std::uint64_t) { return 1; }

json without_times(const char* text) {
  json certificate = json::parse(text);
  certificate.erase("timings");
  certificate.erase("sha256");
  return certificate;
}

int merge(const attest_kernel& kernel, const std::vector<std::string>& parts,
          const char* options = kSmall, attest_progress progress = nullptr) {
  std::vector<const char*> texts;
  for (const std::string& part : parts) texts.push_back(part.c_str());
  return attest_merge(&kernel, nullptr, options, texts.data(), texts.size(), progress, nullptr);
}

void refused_as_bad(int outcome, const std::string& words);

// Right in three calls of a process, and wrong from then on.
attest_status wrong_from_the_fourth(const void*, const attest_forward_args* args) {
  static const attest_kernel right = fixtures::defective_kernel(fixtures::Defect::none),
                             wrong = fixtures::defective_kernel(fixtures::Defect::scale_twice);
  static int calls = 0;
  const attest_kernel& now = ++calls > 3 ? wrong : right;
  return now.forward(now.self, args);
}

TEST_CASE("a finding that needs earlier checks is shown with them", "[python]") {
  attest_kernel kernel = small_kernel(fixtures::Defect::none);
  kernel.forward = wrong_from_the_fourth;
  const auto checked = [&](const char* lines) {
    return attest_check(&kernel, nullptr, lines, "reference_forward");
  };
  CHECK(checked("sq=3,sk=5,d=4") == ATTEST_PASSED);
  REQUIRE(checked("sq=3,sk=5,d=4\nafter=sq=2,d=4\nrepeat=7") == ATTEST_REFUSED);
  const json finding = json::parse(attest_text());
  CHECK(finding["checks"] == 2);  // the fourth of four calls
  CHECK(finding["after"][0]["problem"].get<std::string>().find("sq=2,") != std::string::npos);
  refused_as_bad(checked("sq=3,sk=5,d=4\nrepeat=0"), "repeat=0 must be a whole number");
  refused_as_bad(checked("sq=3,sk=5,d=4\nbefore=sq=2"), "neither repeat=N nor after=CASE");
}

TEST_CASE("shards give what the whole gives", "[python]") {
  for (const auto defect : {fixtures::Defect::none, fixtures::Defect::missing_rescale}) {
    const attest_kernel kernel = small_kernel(defect);
    const int outcome = certify(kernel, kSmall);
    const json whole = without_times(attest_text());
    std::vector<std::string> parts;
    for (const char* shard : {" shard=1/2", " shard=2/2"}) {
      certify(kernel, (kSmall + std::string(shard)).c_str());
      parts.emplace_back(attest_text());
    }
    CHECK(merge(kernel, parts) == outcome);
    CHECK(without_times(attest_text()).dump() == whole.dump());
    CHECK(merge(kernel, {parts[1]}) == outcome);  // what is missing runs here
    CHECK(without_times(attest_text()).dump() == whole.dump());
    merge(kernel, {parts[1]}, kSmall, end_at_once);
    const json known = without_times(attest_text());
    CHECK(known["interrupted"] == true);
    if (outcome == ATTEST_REFUSED) {  // smaller cases are known, and no others tried
      const json shard = without_times(parts[1].c_str());
      CHECK(known["kernels"][0]["findings"][0]["shrunk"] ==
            shard["kernels"][0]["findings"][0]["shrunk"]);
    }
    const json made = known["kernels"][0]["checks"]["made"];
    CHECK(made > 0);
    CHECK(made < whole["kernels"][0]["checks"]["made"]);

    refused_as_bad(merge(kernel, {parts[0], parts[0]}), "are both shard 1/2");
    refused_as_bad(merge(kernel, {parts[0], "{}"}), "'certificate 2' is no certificate");
    refused_as_bad(merge(kernel, parts, "cases=3"),
                   "of another campaign: its data_seed is 2, not 1");
    refused_as_bad(merge(kernel, parts, "shard=1/2"), "leave shard= out");
    refused_as_bad(merge(kernel, {}), "no certificate to merge");
  }
}

TEST_CASE("merging runs the cases that follow from all shards", "[python]") {
  attest_kernel kernel = small_kernel(fixtures::Defect::none);
  kernel.description.dtypes = 1U << ATTEST_F32;
  kernel.description.features = ATTEST_GQA | ATTEST_ALIBI | ATTEST_SOFTCAP;
  const int outcome = certify(kernel, "shapes=none");
  const json whole = without_times(attest_text());
  const auto planned = [](const json& certificate) {
    return certificate["kernels"][0]["checks"]["planned"].get<std::uint64_t>();
  };
  std::uint64_t of_parts = 0;
  std::vector<std::string> parts;
  for (const char* shard : {"shapes=none shard=1/2", "shapes=none shard=2/2"}) {
    certify(kernel, shard);
    parts.emplace_back(attest_text());
    of_parts += planned(json::parse(parts.back()));
  }
  CHECK(merge(kernel, parts, "shapes=none") == outcome);
  CHECK(without_times(attest_text()).dump() == whole.dump());
  CHECK(planned(whole) > of_parts);
}

void refused_as_bad(int outcome, const std::string& words) {
  CHECK(outcome == ATTEST_BAD_INPUT);
  CHECK_THAT(std::string(attest_text()), Catch::Contains(words));
}

TEST_CASE("options that make no sense", "[python]") {
  const attest_kernel kernel = small_kernel(fixtures::Defect::none);
  refused_as_bad(attest_certify(nullptr, nullptr, nullptr, nullptr, nullptr), "kernel is NULL");
  refused_as_bad(certify(kernel, "tier=quick"), "unknown tier 'quick'");
  refused_as_bad(certify(kernel, "sed=1"), "unknown option 'sed=1'; did you mean 'seed'?");
  refused_as_bad(certify(kernel, "seed"), "unknown option 'seed'");
  refused_as_bad(certify(kernel, "seed=-1"), "seed=-1 must be a whole number");
  refused_as_bad(certify(kernel, "jobs=0"), "jobs=0 must be a whole number from 1 to 1024");
  refused_as_bad(certify(kernel, "only=reference"), "unknown law 'reference'");
  refused_as_bad(certify(kernel, "problem=sq=0,d=x"), "d");
  refused_as_bad(certify(kernel, "only=score_level problem=sq=3,d=4"), "problems of your own");
  refused_as_bad(certify(kernel, kSmall, "exact"), "unknown preset 'exact'");
  refused_as_bad(attest_check(&kernel, nullptr, nullptr, "reference_forward"), "case_line is NULL");
  refused_as_bad(attest_check(&kernel, nullptr, "sq=3,d=4 seed=x", "reference_forward"), "'x'");
  attest_kernel nameless = kernel;
  nameless.description.name = "";
  refused_as_bad(certify(nameless, kSmall), "name is empty");
}

}  // namespace
}  // namespace attest::python
