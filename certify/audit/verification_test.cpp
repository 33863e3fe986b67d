#include "certify/audit/verification.hpp"

#include <cstdio>
#include <fstream>

#include "certify/audit/seal.hpp"
#include "certify/digest.hpp"
#include "certify/files.hpp"
#include "certify/report/testing/sample_certificate.hpp"
#include "certify/testing/schema.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

struct Files {
  Files() {
    write_file(library, "a library");
    write_file(program, "the program");
  }
  ~Files() {
    for (const auto& path : {library, program}) std::remove(path.c_str());
  }
  std::string library = "verification_test_library", program = "verification_test_program";
};

// One built-in kernel, one of the library.
json made(const Files& files, const char* verdict = "certified") {
  json certificate = sample_certificate();
  certificate["build"]["program_sha256"] = sha256_of_file(files.program);
  certificate["timings"]["date"] = "2026-01-31T12:00:00Z";
  json& kernels = certificate["kernels"];
  kernels.erase(2);
  kernels[0]["library_sha256"] = nullptr;
  kernels[1]["library_sha256"] = sha256_of_file(files.library);
  kernels[1]["verdict"] = verdict;
  for (json& kernel : kernels) kernel["contract"] = "";
  seal(certificate);
  return certificate;
}

TEST_CASE("a certificate matches the files it was made of", "[audit]") {
  const Files files;
  const json certificate = made(files);
  const Verification both = verify(certificate, {files.library, files.program});
  CHECK(both.match == Match::matches);
  CHECK(both.files[0].kernels == std::vector<std::string>{"./<b>.so:x"});
  CHECK(both.files[1].kernels == std::vector<std::string>{"cpu/good"});
  CHECK(exit_code(both.match) == 0);
  CHECK(verify(certificate, {}).kernels.size() == 2);
  json told = verification_json(certificate, both);
  CHECK(told["kernels"][1]["sizes"] == certificate["kernels"][1]["coverage"]["sizes"]);
  for (json& kernel : told["kernels"]) kernel["sizes"] = nullptr;  // its keys are masks
  check_against(told, json::parse(std::ifstream(ATTEST_VERIFICATION_SCHEMA)));
}

TEST_CASE("a file of another build does not match", "[audit]") {
  const Files files;
  const json certificate = made(files);
  write_file(files.library, "a library, built again");
  const Verification found = verify(certificate, {files.library});
  CHECK(found.match == Match::differs);
  CHECK(found.whole);
  CHECK(found.files[0].kernels.empty());
  CHECK(exit_code(found.match) == 1);
  CHECK(verify(certificate, {files.library, files.program}).match == Match::differs);
}

TEST_CASE("a library that the file is linked with is held against its digest", "[audit]") {
  const Files files;
  json certificate = made(files);
  const auto linked_with = [&](const std::string& path, const std::string& sha256) {
    certificate["kernels"][1]["needed"] = {{{"file", path}, {"sha256", sha256}}};
    certificate.erase("sha256");
    seal(certificate);
    return verify(certificate, {files.library});
  };
  CHECK(linked_with(files.program, sha256_of_file(files.program)).match == Match::matches);
  const Verification other = linked_with(files.program, sha256_of_file(files.library));
  CHECK(other.match == Match::differs);
  CHECK(other.needed.at(0).digest == sha256_of_file(files.program));
  for (const char* nowhere : {"absent.so", "/dev/zero"}) {
    const Verification found = linked_with(nowhere, sha256_of_file(files.library));
    CHECK(found.match == Match::matches);
    CHECK(found.needed.at(0).digest.empty());
  }
}

TEST_CASE("a certificate that was edited does not match", "[audit]") {
  const Files files;
  json certificate = made(files, "violated");
  certificate["kernels"][1]["verdict"] = "certified";
  const Verification found = verify(certificate, {files.library});
  CHECK_FALSE(found.whole);
  CHECK(found.match == Match::differs);
}

TEST_CASE("the right file of a refused kernel is not certified", "[audit]") {
  const Files files;
  const json certificate = made(files, "violated");
  CHECK(verify(certificate, {files.library}).match == Match::not_certified);
  CHECK(verify(certificate, {files.program}).match == Match::matches);
  CHECK(verify(certificate, {}).match == Match::not_certified);
  CHECK(exit_code(Match::not_certified) == 3);
}

TEST_CASE("a function that ran in the certifier's process is of no file", "[audit]") {
  const Files files;
  json certificate = made(files);
  certificate["kernels"][0]["not_seen"] = "writes";
  seal(certificate);
  CHECK(verify(certificate, {files.program}).match == Match::differs);
}

TEST_CASE("bad input of a verification", "[audit]") {
  const Files files;
  CHECK_THROWS_WITH(verify(sample_certificate(), {}), Catch::Contains("certify again"));
  CHECK_THROWS_WITH(verify(made(files), {"absent.so"}), Catch::Contains("No such file"));
  json cut = made(files);
  cut["kernels"][0].erase("library_sha256");
  CHECK_THROWS_AS(verify(cut, {files.library}), InvalidProblem);
}

}  // namespace
}  // namespace attest::certify
