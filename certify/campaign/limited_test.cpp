// A kernel that serves exactly the set it declares is certified, whatever is outside. Sets that are
// hidden here are certified in ci/nightly.
#include <cmath>
#include <optional>
#include <string>

#include "certify/campaign/campaign.hpp"
#include "certify/testing/outside_claims.hpp"
#include "certify/worker/library/description.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/defects/defect.hpp"

namespace attest::certify {
namespace {

const attest_kernel& good() {
  static const attest_kernel kernel = fixtures::defective_kernel(fixtures::Defect::none);
  return kernel;
}

// Correct inside the claims, and of no help outside them.
class Limited {
 public:
  Limited(std::uint32_t directions, std::uint32_t features, const attest_limits& limits)
      : limits_(limits), kernel_(good()) {
    attest_description& d = kernel_.description;
    d.name = "test/limited";
    d.directions = directions;
    d.dtypes = 1U << ATTEST_F32;
    d.features = features;
    limits_.struct_size = sizeof limits_;
    d.limits = &limits_;
    kernel_.self = this;
    kernel_.forward = [](const void* self, const attest_forward_args* x) {
      return inside(self, *x) ? good().forward(good().self, x) : ATTEST_UNSUPPORTED;
    };
    kernel_.backward = [](const void* self, const attest_backward_args* x) {
      return inside(self, *x) ? good().backward(good().self, x) : ATTEST_UNSUPPORTED;
    };
  }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;

  const attest_kernel& kernel() const { return kernel_; }

 private:
  template <class Arguments>
  static bool inside(const void* self, const Arguments& x) {
    const auto& limited = *static_cast<const Limited*>(self);
    return testing::outside_claims(limited.kernel_.description, x).empty();
  }

  attest_limits limits_;
  attest_kernel kernel_;
};

void certified(std::uint32_t directions, std::uint32_t features, const attest_limits& limits) {
  const Limited limited(directions, features, limits);
  CHECK(worker::objection(limited.kernel()) == "");
  CampaignOptions options;
  options.tier = proptest::Tier::smoke;
  options.jobs = 2;
  const CampaignResult result =
      run_campaign(limited.kernel(), options, [](std::uint64_t, std::uint64_t) {});
  for (const std::string& gap : result.gaps) UNSCOPED_INFO("gap: " << gap);
  for (const Finding& finding : result.findings) {
    UNSCOPED_INFO(finding.law << ": " << finding.shrunk.problem.to_string() << ": "
                              << finding.message);
  }
  CHECK(outcome(result) == "certified");
  CHECK(result.refused.empty());
}

constexpr std::uint32_t kBoth = ATTEST_FORWARD | ATTEST_BACKWARD;

}  // namespace

TEST_CASE("causal alone, equal lengths, one scale, one head dimension", "[nightly][limited]") {
  attest_limits limits{};
  limits.only = ATTEST_ONLY_CAUSAL | ATTEST_ONLY_ONE_SCALE;
  limits.head_dims[0] = 64;
  certified(kBoth, ATTEST_CAUSAL_TOP_LEFT | ATTEST_LSE, limits);
}

TEST_CASE("causal alone in forward, without LSE", "[limited]") {
  attest_limits limits{};
  limits.only = ATTEST_ONLY_CAUSAL;
  limits.most_heads_q = 1;
  limits.most_batch = 1;
  certified(ATTEST_FORWARD, ATTEST_CAUSAL_BOTTOM_RIGHT | ATTEST_EMPTY_ROWS | ATTEST_CROSS_LENGTHS,
            limits);
}

TEST_CASE("windows aligned to the bottom right alone", "[.][limited][large]") {
  attest_limits limits{};
  limits.only = ATTEST_ONLY_BOTTOM_RIGHT;
  limits.head_dim = {8, 64, 8};
  certified(kBoth,
            ATTEST_CAUSAL_BOTTOM_RIGHT | ATTEST_WINDOW | ATTEST_GQA | ATTEST_LSE | ATTEST_ALIBI |
                ATTEST_SOFTCAP | ATTEST_CROSS_LENGTHS | ATTEST_EMPTY_ROWS,
            limits);
}

TEST_CASE("sequences of multiples of 64", "[.][limited][large]") {
  attest_limits limits{};
  limits.seqlen_q.multiple = limits.seqlen_k.multiple = 64;
  limits.head_dims[0] = 16;
  limits.head_dims[1] = 24;
  certified(ATTEST_FORWARD,
            ATTEST_CAUSAL_BOTTOM_RIGHT | ATTEST_CROSS_LENGTHS | ATTEST_HEAD_DIM_V | ATTEST_LSE,
            limits);
}

TEST_CASE("one query alone", "[limited]") {
  attest_limits limits{};
  limits.seqlen_q = {1, 1, 0};
  limits.head_dim.multiple = 8;
  certified(ATTEST_FORWARD,
            ATTEST_CAUSAL_BOTTOM_RIGHT | ATTEST_CROSS_LENGTHS | ATTEST_GQA | ATTEST_LSE, limits);
}

TEST_CASE("one query alone with lengths of keys, without a causal mask", "[.][limited][large]") {
  attest_limits limits{};
  limits.seqlen_q = {1, 1, 0};
  limits.most_batch = 4;
  limits.only = ATTEST_ONLY_ONE_SCALE;
  limits.softmax_scale = 0.1;
  certified(ATTEST_FORWARD, ATTEST_KEY_LENGTHS | ATTEST_CROSS_LENGTHS | ATTEST_GQA, limits);
}

TEST_CASE("packed sequences under causal masks alone", "[.][limited][large]") {
  attest_limits limits{};
  limits.only = ATTEST_ONLY_CAUSAL | ATTEST_ONLY_BOTTOM_RIGHT;
  certified(kBoth,
            ATTEST_CAUSAL_BOTTOM_RIGHT | ATTEST_WINDOW | ATTEST_PACKED_SEQUENCES | ATTEST_LSE |
                ATTEST_DLSE | ATTEST_GQA,
            limits);
}

TEST_CASE("LSE = 0 on rows without a key is a convention of its own", "[nightly][limited]") {
  attest_kernel kernel = good();
  kernel.description.features = ATTEST_WINDOW | ATTEST_LSE | ATTEST_CROSS_LENGTHS |
                                ATTEST_EMPTY_ROWS | ATTEST_KEY_LENGTHS | ATTEST_GQA;
  kernel.description.dtypes = 1U << ATTEST_F32;
  kernel.description.empty_row = ATTEST_ZERO_ZERO;
  kernel.description.max_head_dim = 16;
  kernel.forward = [](const void* self, const attest_forward_args* x) {
    const attest_status status = good().forward(self, x);
    if (x->LSE == nullptr) return status;
    auto* const lse =
        reinterpret_cast<float*>(static_cast<char*>(x->LSE->data) + x->LSE->byte_offset);
    const std::int64_t *shape = x->LSE->shape, *strides = x->LSE->strides;
    for (std::int64_t b = 0; b < shape[0]; ++b) {
      for (std::int64_t h = 0; h < shape[1]; ++h) {
        for (std::int64_t i = 0; i < shape[2]; ++i) {
          float& value = lse[b * strides[0] + h * strides[1] + i * strides[2]];
          if (std::isinf(value)) value = 0;
        }
      }
    }
    return status;
  };
  CampaignOptions options;
  options.jobs = 2;
  const auto campaign = [&] {
    return run_campaign(kernel, options, [](std::uint64_t, std::uint64_t) {});
  };
  const CampaignResult declared = campaign();
  for (const std::string& gap : declared.gaps) UNSCOPED_INFO("gap: " << gap);
  for (const Finding& finding : declared.findings) UNSCOPED_INFO(finding.message);
  CHECK(outcome(declared) == "certified");
  kernel.description.empty_row = ATTEST_ZERO_NEG_INF;
  CHECK(outcome(campaign()) == "violated");
}

TEST_CASE("a refusal inside the set is a hole", "[limited]") {
  attest_limits limits{};
  limits.struct_size = sizeof limits;
  limits.seqlen_q.multiple = limits.seqlen_k.multiple = 16;
  attest_kernel kernel = good();
  kernel.description.directions = ATTEST_FORWARD;
  kernel.description.features = ATTEST_LSE;
  kernel.description.max_head_dim = 16;
  kernel.description.limits = &limits;
  kernel.forward = [](const void* self, const attest_forward_args* x) {
    return x->problem->seqlen_q % 32 == 0 ? good().forward(self, x) : ATTEST_UNSUPPORTED;
  };
  CampaignOptions options;
  options.cases = 20;
  const CampaignResult result = run_campaign(kernel, options, [](std::uint64_t, std::uint64_t) {});
  CHECK(outcome(result) == "incomplete");
  CHECK_FALSE(result.refused.empty());
}

}  // namespace attest::certify
