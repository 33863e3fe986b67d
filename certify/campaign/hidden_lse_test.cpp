// Campaigns of kernels with gradients that keep their LSE to themselves, as autograd does.
#include <string>

#include "certify/campaign/campaign.hpp"
#include "certify/worker/library/description.hpp"
#include "core/tensor.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/defects/defect.hpp"

namespace attest::certify {
namespace {

using fixtures::Defect;

// A kernel of the tree whose backward pass makes its LSE again.
class Hidden {
 public:
  explicit Hidden(Defect defect) : shown_(fixtures::defective_kernel(defect)), kernel_(shown_) {
    kernel_.description.name = "test/hidden_lse";
    kernel_.description.dtypes = 1U << ATTEST_F32 | 1U << ATTEST_BF16;
    kernel_.description.features &= ~std::uint32_t{ATTEST_LSE | ATTEST_DLSE};
    kernel_.self = &shown_;
    kernel_.forward = [](const void* self, const attest_forward_args* x) {
      const auto& shown = *static_cast<const attest_kernel*>(self);
      return x->LSE == nullptr ? shown.forward(shown.self, x) : ATTEST_FAILED;
    };
    kernel_.backward = backward;
  }

  Hidden(const Hidden&) = delete;
  Hidden& operator=(const Hidden&) = delete;

  const attest_kernel& kernel() const { return kernel_; }

 private:
  static attest_status backward(const void* self, const attest_backward_args* x) {
    const auto& shown = *static_cast<const attest_kernel*>(self);
    if (x->LSE != nullptr) return ATTEST_FAILED;
    const TensorView stored = view_of(*x->O, "O", {"batch", "seqlen_q", "heads", "head_dim"});
    const auto extent = [&](std::size_t axis) { return stored.extent(axis); };
    const Tensor O("O", stored.dtype(),
                   {{"batch", extent(0), 0},
                    {"seqlen_q", extent(1), 0},
                    {"heads", extent(2), 0},
                    {"head_dim", extent(3), 0}}),
        LSE("LSE", DType::f32,
            {{"batch", extent(0), 0}, {"heads", extent(2), 0}, {"seqlen_q", extent(1), 0}});
    const AbiTensor o(O.view()), lse(LSE.view());
    attest_forward_args again{};
    again.struct_size = sizeof again;
    again.problem = x->problem;
    again.Q = x->Q, again.K = x->K, again.V = x->V;
    again.O = o.get(), again.LSE = lse.get(), again.bias = x->bias;
    const attest_status status = shown.forward(shown.self, &again);
    if (status != ATTEST_OK) return status;
    attest_backward_args args = *x;
    args.LSE = lse.get();
    return shown.backward(shown.self, &args);
  }

  attest_kernel shown_, kernel_;
};

CampaignResult campaign_of(Defect defect, std::optional<std::uint64_t> cases) {
  const Hidden hidden(defect);
  CHECK(worker::objection(hidden.kernel()) == "");
  CampaignOptions options;
  options.tier = proptest::Tier::smoke;
  options.jobs = 2;
  options.cases = cases;
  return run_campaign(hidden.kernel(), options, [](std::uint64_t, std::uint64_t) {});
}

}  // namespace

TEST_CASE("gradients of a kernel that keeps its LSE are certified", "[.][hidden_lse][large]") {
  const CampaignResult result = campaign_of(Defect::none, std::nullopt);
  for (const std::string& gap : result.gaps) UNSCOPED_INFO("gap: " << gap);
  for (const Finding& finding : result.findings) {
    UNSCOPED_INFO(finding.law << ": " << finding.shrunk.problem.to_string() << ": "
                              << finding.message);
  }
  CHECK(outcome(result) == "certified");
  CHECK(result.refused.empty());
}

TEST_CASE("wrong gradients are refused where LSE is not seen", "[hidden_lse]") {
  constexpr std::uint64_t kFew = 8;
  for (const Defect defect : {Defect::dq_without_scale, Defect::gqa_first_head,
                              Defect::backward_unmasked, Defect::lse_of_another_row}) {
    const CampaignResult result = campaign_of(defect, kFew);
    CAPTURE(static_cast<int>(defect));
    CHECK(outcome(result) == "violated");
  }
}

}  // namespace attest::certify
