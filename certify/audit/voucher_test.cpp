#include "certify/audit/voucher.hpp"

#include "certify/audit/seal.hpp"
#include "certify/report/testing/sample_certificate.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

// cpu/good is in the program, ./<b>.so:x in a library.
json made() {
  json certificate = sample_certificate();
  certificate["build"]["program_sha256"] = "of the program";
  json& kernels = certificate["kernels"];
  for (json& kernel : kernels) kernel["library_sha256"] = nullptr;
  kernels[1]["library_sha256"] = "of the library";
  seal(certificate);
  return certificate;
}

json certified() {
  json certificate = made();
  certificate["kernels"][1]["verdict"] = "certified";
  seal(certificate);
  return certificate;
}

VouchedKernel library() { return {"./<b>.so:x", "of the library", {"f32", "gqa"}, {"forward"}}; }

TEST_CASE("a certificate vouches for the file that it was made of", "[audit]") {
  CHECK(vouches(certified(), library()));
  CHECK(vouches(certified(), {"cpu/good", "of the program", {"f32"}, {"forward"}}));
  VouchedKernel moved = library();
  moved.name = "build/<b>.so:x";
  CHECK(vouches(certified(), moved));
  CHECK_FALSE(vouches(certified(), {"cpu/other", "of the program", {"f32"}, {"forward"}}));
}

TEST_CASE("a certificate of another file vouches for nothing", "[audit]") {
  VouchedKernel other = library();
  other.file_sha256 = "of a library built again";
  CHECK_THROWS_WITH(
      vouches(certified(), other),
      "certificate of './<b>.so:x': is of another file, SHA-256 of the library, not of a "
      "library built again; certify again, or leave --certificate out");
  // A built-in kernel of another program, too.
  CHECK_THROWS_AS(vouches(certified(), {"cpu/good", "of another program", {}, {}}), InvalidProblem);
}

TEST_CASE("what a certificate does not say it does not vouch for", "[audit]") {
  CHECK_THROWS_WITH(vouches(made(), library()),
                    Catch::Contains("says 'violated', not 'certified'"));
  VouchedKernel kernel = library();
  kernel.uses = {"f32", "window"};
  CHECK_THROWS_WITH(vouches(certified(), kernel), Catch::Contains("has no check of 'window'"));
  kernel = library();
  kernel.directions = {"forward", "backward"};
  CHECK_THROWS_WITH(vouches(certified(), kernel), Catch::Contains("has no backward pass"));
}

TEST_CASE("a certificate that was changed vouches for nothing", "[audit]") {
  json certificate = made();
  certificate["kernels"][1]["verdict"] = "certified";  // without a new seal
  CHECK_THROWS_WITH(vouches(certificate, library()), Catch::Contains("was changed"));
  json older = certified();
  older.erase("sha256");
  CHECK_THROWS_AS(vouches(older, library()), InvalidProblem);
  CHECK_THROWS_AS(vouches(json{{"sha256", ""}}, library()), InvalidProblem);
}

}  // namespace
}  // namespace attest::certify
