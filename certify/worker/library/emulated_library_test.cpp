// Libraries for CUDA on an emulated device. They are made without nvcc.
#include <string>

#include "certify/campaign/where_run.hpp"
#include "certify/worker/process/isolated_kernel.hpp"
#include "certify/worker/testing/plugins.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify::worker {
namespace {

using testing::kernel_called;
using testing::limits;
using testing::plugin;

IsolatedKernels emulated(const std::string& name) {
  return isolate_library(plugin(name), limits(), true);
}

const proptest::Case kCase{Problem::parse("hq=2,sq=5,sk=7,d=8"), proptest::Values::normal, 1, 1};

proptest::LawResult judged(const attest_kernel& kernel, const proptest::Case& c = kCase) {
  return check(proptest::find_law("reference_forward"), kernel, c);
}

}  // namespace

TEST_CASE("the PTX of a library for CUDA is carried out", "[emulated]") {
  const IsolatedKernels kernels = emulated("by_hand");
  const attest_kernel& right = kernel_called(kernels, "hand/right");
  CHECK(right.description.device == ATTEST_CUDA);
  CHECK(where_run(right.description) == "emulated on the host from its PTX");
  CHECK(isolation_words(right) == " --emulate");
  CHECK(library_of(right).value_or("").ends_with("libby_hand.so"));
  CHECK(needed_by(right).empty());  // of the device's libraries none is its own
  for (const char* problem :
       {"hq=2,sq=5,sk=7,d=8", "b=2,hq=4,hkv=2,sq=130,sk=3,d=4,dv=6", "sq=3,sk=9,d=5,layout=bhsd"}) {
    CAPTURE(problem);
    const proptest::LawResult result =
        judged(right, {Problem::parse(problem), proptest::Values::normal, 1, 1});
    CAPTURE(result.message);
    CHECK(result.verdict == Verdict::passed);
  }
}

TEST_CASE("a library of CUDA 12", "[emulated]") {
  const IsolatedKernels kernels = emulated("by_hand_cuda_12");
  const proptest::LawResult right = judged(kernel_called(kernels, "hand/right"));
  CAPTURE(right.message);
  CHECK(right.verdict == Verdict::passed);
  CHECK(judged(kernel_called(kernels, "hand/multiplied")).verdict == Verdict::violated);
}

TEST_CASE("mistakes of its kernels are found", "[emulated]") {
  const IsolatedKernels kernels = emulated("by_hand");
  const auto message = [&](const char* name) {
    const proptest::LawResult result = judged(kernel_called(kernels, name));
    CHECK(result.verdict == Verdict::violated);
    return result.message;
  };
  CHECK_THAT(message("hand/multiplied"), Catch::StartsWith("outside the proved bound: O["));
  CHECK_THAT(message("hand/one_row_more"),
             Catch::Contains("kernel 'attention': out of bounds: lane 10 ") &&
                 Catch::Contains("(PTX line "));
  CHECK_THAT(message("hand/default_stream"),
             Catch::Contains("kernel 'attention' went to the default stream, not to the call's"));
}

TEST_CASE("mistakes are named where the library's own check ends the call", "[emulated]") {
  const IsolatedKernels kernels = emulated("by_hand");
  for (const char* name : {"hand/throws", "hand/aborts"}) {
    CAPTURE(name);
    const proptest::LawResult result = judged(kernel_called(kernels, name));
    CHECK(result.verdict == Verdict::crashed);
    CHECK_THAT(result.message, Catch::Contains("kernel 'attention': out of bounds: lane 10 "));
  }
}

TEST_CASE("an instruction that is not carried out is no fault of the kernel", "[emulated]") {
  const IsolatedKernels kernels = emulated("by_hand");
  for (const std::string name : {"hand/unknown_opcode", "hand/unknown_aborts"}) {
    CHECK_THROWS_WITH(
        judged(kernel_called(kernels, name)),
        Catch::Contains(name + "' cannot be emulated: PTX line ") && Catch::Contains("ex7.approx"));
  }
}

TEST_CASE("libraries that cannot be emulated are told why", "[emulated]") {
  CHECK_THROWS_WITH(
      emulated("by_hand_machine_code"),
      Catch::Contains("libby_hand_machine_code.so': holds machine code alone, no PTX; "
                      "build it with nvcc -gencode"));
  CHECK_THROWS_WITH(emulated("by_hand_graphs"),
                    Catch::Contains("calls cudaGraphLaunch, cudaGraphUpload, which the emulated "
                                    "device has not"));
  CHECK_THROWS_WITH(emulated("nonsense_good"),
                    Catch::Contains("'nonsense' has its tensors on the CPU; leave --emulate out"));
  CHECK_THROWS_WITH(emulated("nonsense_on_device"),
                    Catch::Contains("registers no kernel with libcudart.so.12 or .13") &&
                        Catch::Contains("-cudart shared"));
}

}  // namespace attest::certify::worker
