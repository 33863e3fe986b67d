// The limits of descriptions: objections to nonsense, and their way through the worker.
#include "certify/worker/library/limits.hpp"

#include "certify/worker/library/description.hpp"
#include "certify/worker/process/isolated_kernel.hpp"
#include "certify/worker/testing/plugins.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify::worker {
namespace {

attest_kernel plain_kernel() {
  attest_kernel kernel{};
  kernel.struct_size = sizeof kernel;
  kernel.abi_version = ATTEST_ABI_VERSION;
  attest_description& d = kernel.description;
  d.struct_size = sizeof d;
  d.name = "test/kernel";
  d.device = ATTEST_CPU;
  d.directions = ATTEST_FORWARD;
  d.dtypes = 1u << ATTEST_F32;
  d.numerics.struct_size = sizeof d.numerics;
  kernel.forward = [](const void*, const attest_forward_args*) { return ATTEST_OK; };
  return kernel;
}

// The objection to a kernel of these features with limits changed by `spoil`.
template <class Spoil>
std::string objection_to(std::uint32_t features, const Spoil& spoil) {
  attest_limits limits{};
  limits.struct_size = sizeof limits;
  attest_kernel kernel = plain_kernel();
  kernel.description.features = features;
  kernel.description.limits = &limits;
  spoil(kernel.description, limits);
  return objection(kernel);
}

}  // namespace

TEST_CASE("limits that make sense") {
  const auto good = [](std::uint32_t features, const auto& set) {
    CHECK(objection_to(features, set) == "");
  };
  good(0, [](auto&, auto&) {});
  good(ATTEST_CAUSAL_TOP_LEFT, [](auto&, auto& l) { l.only = ATTEST_ONLY_CAUSAL; });
  good(ATTEST_WINDOW, [](auto&, auto& l) { l.only = ATTEST_ONLY_CAUSAL | ATTEST_ONLY_TOP_LEFT; });
  good(ATTEST_ANY_SCALE, [](auto&, auto& l) {
    l.only = ATTEST_ONLY_ONE_SCALE;
    l.softmax_scale = -1;
  });
  good(ATTEST_CROSS_LENGTHS, [](auto&, auto& l) { l.seqlen_q = {1, 1, 0}; });
  good(ATTEST_HEAD_DIM_V, [](auto&, auto& l) {
    l.head_dims[0] = 128;
    l.head_dims[1] = 192;
  });
}

TEST_CASE("limits that contradict themselves or the claims") {
  const auto refused = [](std::uint32_t features, const auto& spoil, const std::string& text) {
    const std::string message = objection_to(features, spoil);
    CAPTURE(text, message);
    CHECK(message.rfind("description", 0) == 0);
    CHECK(message.find(text) != std::string::npos);
  };
  refused(
      0, [](auto&, auto& l) { l.struct_size = 8; }, "attest_limits.struct_size is 8");
  refused(
      0, [](auto&, auto& l) { l.only = 1 << 4; }, "limits.only is 0x10; unknown bits 0x10");
  refused(
      0, [](auto&, auto& l) { l.seqlen_q.least = -1; }, "limits.seqlen_q has -1");
  refused(
      0,
      [](auto&, auto& l) {
        l.seqlen_k = {65, 127, 64};
      },
      "limits.seqlen_k is from 65 to 127");
  refused(
      0,
      [](auto&, auto& l) {
        l.head_dim = {9, 8, 0};
      },
      "limits.head_dim is from 9 to 8");
  refused(
      0, [](auto&, auto& l) { l.most_batch = -2; }, "limits.most_batch has -2");
  refused(
      0, [](auto&, auto& l) { l.head_dims[0] = -64; }, "limits.head_dims has -64");
  refused(
      0, [](auto&, auto& l) { l.head_dims[1] = 64; }, "limits.head_dims has 64 after a 0");
  refused(
      0,
      [](auto& d, auto& l) {
        d.max_head_dim = 32;
        l.head_dims[0] = 64;
      },
      "limits.head_dims has 64, which max_head_dim");
  refused(
      0, [](auto&, auto& l) { l.softmax_scale = 1; }, "without ATTEST_ONLY_ONE_SCALE");
  const auto one_scale = [](double scale) {
    return [scale](auto&, auto& l) {
      l.only = ATTEST_ONLY_ONE_SCALE;
      l.softmax_scale = scale;
    };
  };
  refused(0, one_scale(-1), "limits.softmax_scale is -1 without ATTEST_ANY_SCALE");
  refused(0, one_scale(1e-300), "a normal number of float32");
  refused(ATTEST_ANY_SCALE, one_scale(1), "ATTEST_ANY_SCALE is claimed, but");
  refused(
      0, [](auto&, auto& l) { l.only = ATTEST_ONLY_TOP_LEFT | ATTEST_ONLY_BOTTOM_RIGHT; },
      "ATTEST_ONLY_TOP_LEFT and ATTEST_ONLY_BOTTOM_RIGHT");
  refused(
      ATTEST_CAUSAL_BOTTOM_RIGHT, [](auto&, auto& l) { l.only = ATTEST_ONLY_TOP_LEFT; },
      "ATTEST_CAUSAL_BOTTOM_RIGHT is claimed");
  refused(
      0, [](auto&, auto& l) { l.only = ATTEST_ONLY_CAUSAL; }, "no causal mask is claimed");
  refused(
      ATTEST_HEAD_DIM_V, [](auto&, auto& l) { l.head_dims[0] = 64; }, "64 is the only head_dim");
  refused(
      ATTEST_GQA, [](auto&, auto& l) { l.most_heads_q = 1; }, "ATTEST_GQA is claimed");
  refused(
      ATTEST_CROSS_LENGTHS,
      [](auto&, auto& l) {
        l.seqlen_q = l.seqlen_k = {16, 16, 0};
      },
      "16 is the only length");
  refused(
      0,
      [](auto&, auto& l) {
        l.seqlen_q.most = 8;
        l.seqlen_k.least = 9;
      },
      "no length in common");
  // More queries than keys: the first rows of a causal mask see none.
  refused(
      ATTEST_CAUSAL_BOTTOM_RIGHT | ATTEST_CROSS_LENGTHS,
      [](auto&, auto& l) {
        l.only = ATTEST_ONLY_CAUSAL;
        l.seqlen_q.least = 64;
        l.seqlen_k.most = 32;
      },
      "limits leave no problem");
}

TEST_CASE("limits arrive from a library") {
  const IsolatedKernels kernels =
      isolate_library(std::string(ATTEST_EXAMPLES) + "/libcausal.so", testing::limits());
  const attest_limits* const limits = kernels.front()->kernel().description.limits;
  REQUIRE(limits != nullptr);
  CHECK(limits->only == (ATTEST_ONLY_CAUSAL | ATTEST_ONLY_ONE_SCALE));
  CHECK(limits->head_dims[0] == 64);
  CHECK(limits->head_dims[1] == 0);
  const IsolatedKernels others =
      isolate_library(std::string(ATTEST_EXAMPLES) + "/libattention.so", testing::limits());
  CHECK(others.front()->kernel().description.limits == nullptr);
}

}  // namespace attest::certify::worker
