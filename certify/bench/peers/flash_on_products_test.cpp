#include "certify/bench/peers/flash_on_products.hpp"

#include <cstdint>

#include "certify/bench/timing/timing.hpp"
#include "core/error.hpp"
#include "core/problem.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

template <bool kAdds>
bool multiply_plainly(const PeerProduct& p) {
  for (int column = 0; column < p.n; ++column) {
    for (int row = 0; row < p.m; ++row) {
      float& sum = p.C[static_cast<std::int64_t>(column) * p.ldc + row];
      float product = 0;
      for (int l = 0; l < p.k; ++l) {
        const int at = p.transposes ? l * p.ldb + column : column * p.ldb + l;
        product += p.A[static_cast<std::int64_t>(l) * p.lda + row] * p.B[at];
      }
      sum = p.adds && kAdds ? sum + product : product;
    }
  }
  return true;
}

TEST_CASE("the flash schedule over a product passes as a kernel does", "[bench]") {
  static PeerLibrary plain{"plain/flash", "a test's products", multiply_plainly<true>};
  const attest_kernel kernel = flash_on(plain);
  for (const char* problem :
       {"b=2,hq=4,hkv=2,sq=5,sk=203,d=8,dv=12", "hq=2,sq=200,sk=150,d=8,mask=causal_br",
        "sq=210,sk=210,d=4,mask=causal_tl", "sq=1,sk=97,d=16"}) {
    INFO(problem);
    CHECK_NOTHROW(verify({&kernel}, Problem::parse(problem), 1));
  }
}

TEST_CASE("a product that forgets what was summed is not timed, nor one that fails", "[bench]") {
  static PeerLibrary forgetful{"forgetful/flash", "a defect", multiply_plainly<false>};
  static PeerLibrary failing{"failing/flash", "a defect", [](const PeerProduct&) { return false; }};
  for (PeerLibrary* library : {&forgetful, &failing}) {
    const attest_kernel kernel = flash_on(*library);
    CHECK_THROWS_AS(verify({&kernel}, Problem::parse("sq=3,sk=200,d=8"), 1), InvalidProblem);
  }
}

}  // namespace
}  // namespace attest::certify
