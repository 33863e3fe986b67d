#include "gpu/kernels/emulated/fast_memory.hpp"

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::gpu {
namespace {

TEST_CASE("words are those of shared memory and of every thread's registers",
          "[gpu][fast_memory]") {
  CHECK(FastMemory{1024, 128, {32, 0}}.words() == 256 + 4096);
  CHECK(FastMemory{5, 0, {32, 0}}.words() == 2);            // a word begun is a word
  CHECK(FastMemory{1024, 128, {32, 640}}.words() == 4352);  // local memory is not fast
  CHECK(FastMemory{0, 1024, {255, 0}}.words() == 261120);
}

TEST_CASE("a kernel that is not declared has no fast memory", "[gpu][fast_memory]") {
  CHECK(declared_thread_memory("flash2_forward<Flash2Tile<32, 32>, 1, float>").registers > 0);
  CHECK_THROWS_AS(declared_thread_memory("flash2_forward<Flash2Tile<32, 32>, 3, float>"),
                  InvalidProblem);
  CHECK_THROWS_AS(declared_thread_memory("flash3"), InvalidProblem);
}

}  // namespace
}  // namespace attest::gpu
