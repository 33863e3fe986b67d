#include "certify/campaign/where_run.hpp"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "certify/certificate.hpp"
#include "core/testing/catch.hpp"
#include "cpu/register.hpp"
#include "gpu/runtime/emulated_device.hpp"
#include "gpu/watch.hpp"

namespace attest::certify {
namespace {

TEST_CASE("a kernel of gpu/ is emulated, one for a device runs there, others on the CPU", "[ran]") {
  Registry registry;
  register_emulated(registry);
  const std::size_t emulated = registry.kernels().size();
  register_cpu(registry);
  REQUIRE(emulated > 0);
  REQUIRE(registry.kernels().size() > emulated);
  for (std::size_t k = 0; k < registry.kernels().size(); ++k) {
    attest_description description = registry.kernels()[k]->description;
    INFO(description.name);
    CHECK(where_run(description) == (k < emulated ? "emulated on the host" : "on the CPU"));
    description.device = ATTEST_CUDA;
    CHECK(where_run(description) == "on a CUDA device");
  }
  // A library's kernel has the library before its name, whatever that is.
  attest_description of_library = registry.kernels().front()->description;
  const std::string name = std::string("./libmine.so:") + of_library.name;
  of_library.name = name.c_str();
  CHECK(where_run(of_library) == "on the CPU");
}

TEST_CASE("a library for CUDA runs where it says, in words of the schema", "[ran]") {
  Registry registry;
  register_cpu(registry);
  attest_description description = registry.kernels().front()->description;
  description.device = ATTEST_CUDA;
  const std::string summary = gpu::runtime::kEmulatedSummary + std::string("mine");
  description.summary = summary.c_str();
  CHECK(where_run(description) == "emulated on the host from its PTX");
  std::ifstream file(ATTEST_SCHEMA);
  const std::string schema{std::istreambuf_iterator<char>(file), {}};
  CHECK(schema.find('"' + std::string(where_run(description)) + '"') != std::string::npos);
  description.device = ATTEST_CPU;
  CHECK(where_run(description) == "on the CPU");
}

TEST_CASE("a function in Python runs where its arrays are", "[ran]") {
  Registry registry;
  register_cpu(registry);
  attest_description description = registry.kernels().front()->description;
  description.summary = "a function in Python, with arrays of torch";
  CHECK(where_run(description) == "on the CPU");
  description.summary = "a function in Python, with arrays of torch on cuda:1";
  CHECK(where_run(description) == "on cuda:1");
  description.summary = "of a library, on cuda:1";
  CHECK(where_run(description) == "on the CPU");
}

TEST_CASE("a certificate says where each kernel ran", "[ran]") {
  Registry registry;
  register_emulated(registry);
  register_cpu(registry);
  CampaignResult emulated, plain;
  emulated.kernel = "gpu/flash2";
  plain.kernel = "cpu/flash2";
  const nlohmann::json object = certificate(registry, {}, {emulated, plain});
  CHECK(object.at("kernels").at(0).at("ran") == "emulated on the host");
  CHECK(object.at("kernels").at(1).at("ran") == "on the CPU");
}

}  // namespace
}  // namespace attest::certify
