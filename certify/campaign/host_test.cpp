#include "certify/campaign/host.hpp"

#include <nlohmann/json.hpp>

#include "certify/digest.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

TEST_CASE("a processor is read from its text", "[host]") {
  const Processor x86 = parse_cpuinfo(
      "processor\t: 0\nmodel name\t: Some Chip\nflags\t\t: fpu sse2 avx2 fma lm\n\n"
      "processor\t: 1\nmodel name\t: Another\nflags\t\t: fpu sse2\n");
  CHECK(x86.name == "Some Chip");
  CHECK(x86.extensions == std::vector<std::string>{"avx2", "fma", "sse2"});
  const Processor arm = parse_cpuinfo("processor\t: 0\nFeatures\t: fp asimd crc32 sve\n");
  CHECK(arm.name.empty());
  CHECK(arm.extensions == std::vector<std::string>{"asimd", "sve"});
  CHECK(parse_cpuinfo("").extensions.empty());
  CHECK(parse_cpuinfo(":\nflags:\n").extensions.empty());
}

TEST_CASE("the build says compiler, kind and flags", "[host]") {
  const auto build = build_json();
  CHECK_FALSE(build.at("compiler").get<std::string>().empty());
  CHECK(build.at("flags").get<std::string>().find("-ffp-contract=off") != std::string::npos);
}

TEST_CASE("a host has the target of the kernels once it is told", "[host]") {
  tell_cpu_target("");
  CHECK(host_json().at("cpu_target").is_null());
  tell_cpu_target("AVX2");
  CHECK(host_json().at("cpu_target") == "AVX2");
  tell_cpu_target("");
}

TEST_CASE("a build names its file and its commit", "[host]") {
  const nlohmann::json build = build_json();
  CHECK(build.at("program_sha256") == sha256_of_file("/proc/self/exe"));
  CHECK(build.at("commit").is_null());  // tests are not linked with it
}

}  // namespace
}  // namespace attest::certify
