#include "gpu/device/measure/resource_usage.hpp"

#include <fstream>
#include <iterator>

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::gpu::cuda {
namespace {

std::string entry(const std::string& columns, const std::string& policy,
                  const std::string& architecture) {
  return "ptxas info    : Compiling entry function "
         "'_ZN6attest3gpu6device14flash2_forwardILi" +
         columns + "ENS_4simt6device" + policy + "EEEvNS1_16ForwardArgumentsIT0_EE' for '" +
         architecture + "'\nptxas info    : Function properties for flash2\n";
}

const std::string& report() {
  static const std::string text =
      "ptxas info    : 0 bytes gmem\n" + entry("18", "9Uncounted", "sm_80") +
      "    640 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 640 bytes cumulative stack size\n" +
      entry("2", "7Counted", "sm_90a") +
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 226 registers, used 1 barriers, 1024 bytes smem\n"
      "ptxas info    : Compiling entry function '_Z5otherv' for 'sm_90a'\n"
      "    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 9 registers\n" +
      entry("18", "9Uncounted", "sm_90a") +
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 177 registers, used 1 barriers\n";
  return text;
}

TEST_CASE("a report is read kernel by kernel", "[gpu][resources]") {
  const std::vector<ResourceUsage> kernels = parse_ptxas(report());
  REQUIRE(kernels.size() == 3);
  CHECK(kernels[0].kernel == "flash2_forward<18>");
  CHECK(kernels[0].policy == "Uncounted");
  CHECK(kernels[0].architecture == "sm_80");
  CHECK(kernels[0].thread == ThreadMemory{168, 640});
  CHECK(kernels[1].policy == "Counted");
  CHECK(kernels[1].thread == ThreadMemory{232, 0});
  CHECK(kernels[1].static_shared_bytes == 1024);
  CHECK(kernels[2].thread == ThreadMemory{184, 0});
  CHECK(parse_ptxas("").empty());
}

TEST_CASE("template arguments other than the policy are part of a kernel's name",
          "[gpu][resources]") {
  const auto kernel = [](const std::string& mangled) {
    return parse_ptxas("Compiling entry function '" + mangled + "' for 'sm_90a'\n").at(0).kernel;
  };
  CHECK(kernel("_ZN6attest3gpu6device16two_pass_queriesINS1_12BackwardTileILi1ELi2ELi32EEENS_4simt6"
               "device9UncountedEEEvNS1_17BackwardArgumentsIT0_EE") ==
        "two_pass_queries<BackwardTile<1, 2, 32>>");
}

TEST_CASE("differences have a line each", "[gpu][resources]") {
  const std::vector<ResourceUsage> kernels = parse_ptxas(report());
  const auto lines = [&](Declaration declared) { return differences(kernels, declared); };
  CHECK(lines([](std::string_view) { return ThreadMemory{184, 640}; }).empty());
  CHECK(lines([](std::string_view) {
          return ThreadMemory{176, 640};
        }) ==
        std::vector<std::string>{"flash2_forward<18>: 184 registers, 640 local bytes; declared are "
                                 "176 registers, 640 local bytes"});
  CHECK(lines([](std::string_view) { return ThreadMemory{192, 640}; }).size() == 1);
  CHECK(lines([](std::string_view) { return ThreadMemory{184, 0}; }).size() == 1);
  CHECK(lines([](std::string_view) -> ThreadMemory { throw InvalidProblem("?"); }) ==
        std::vector<std::string>{
            "flash2_forward<18>: 184 registers, 640 local bytes; nothing is declared"});
}

#ifdef ATTEST_PTXAS_REPORTS
TEST_CASE("registers and local memory of every kernel are as declared", "[gpu][resources]") {
  std::vector<ResourceUsage> all;
  for (const char* path : {ATTEST_PTXAS_REPORTS}) {
    INFO(path);
    std::ifstream file(path);
    const std::vector<ResourceUsage> kernels =
        parse_ptxas({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
    CHECK_FALSE(kernels.empty());
    all.insert(all.end(), kernels.begin(), kernels.end());
  }
  CHECK(differences(all, declared_thread_memory) == std::vector<std::string>{});
}
#endif

}  // namespace
}  // namespace attest::gpu::cuda
