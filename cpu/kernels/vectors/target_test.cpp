#include "cpu/kernels/vectors/target.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::cpu {
namespace {

TEST_CASE("a target is named as Highway names it, and no other name is taken", "[cpu][target]") {
  const auto& all = runnable_targets();
  REQUIRE_FALSE(all.empty());
  for (const std::string& name : all) CHECK(choose_target(name.c_str()) == name);
  CHECK(choose_target(nullptr) == all.front());
  CHECK(choose_target("") == all.front());
  CHECK(std::find(all.begin(), all.end(), target_name()) != all.end());
  for (const char* other : {"avx2", "AVX", "AVX2 ", "SSSE3", "0"}) {
    INFO(other);
    std::string message;
    try {
      choose_target(other);
    } catch (const InvalidProblem& error) {
      message = error.what();
    }
    CHECK(message.find(std::string("ATTEST_CPU_TARGET is '") + other + "'") == 0);
    CHECK(message.find("there are " + all.front()) != std::string::npos);
  }
}

}  // namespace
}  // namespace attest::cpu
