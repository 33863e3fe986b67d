// Layout and strides: bits where a kernel claims them, bounds where it does not.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/testing/catch.hpp"
#include "fixtures/defects/defect.hpp"
#include "proptest/judge/limits.hpp"
#include "proptest/laws/law.hpp"

namespace attest::proptest {
namespace {

enum class Way : std::uint8_t { lanes_where_contiguous, blind_to_strides };

const float* row(const attest_tensor& t, std::int64_t s, Way way) {
  const auto* const first =
      reinterpret_cast<const float*>(static_cast<const char*>(t.data) + t.byte_offset);
  return first + s * (way == Way::blind_to_strides ? t.shape[2] * t.shape[3] : t.strides[1]);
}

// As vectors of four do it where rows are contiguous, else in order.
float product(const float* a, std::int64_t stride_a, const float* b, std::int64_t stride_b,
              std::int64_t count) {
  float lanes[4] = {};
  const bool contiguous = stride_a == 1 && stride_b == 1;
  for (std::int64_t c = 0; c < count; ++c) {
    lanes[contiguous ? c % 4 : 0] += a[c * stride_a] * b[c * stride_b];
  }
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

// One batch entry and one head.
attest_status forward(const void* self, const attest_forward_args* x) {
  const Way way = *static_cast<const Way*>(self);
  const attest_problem& p = *x->problem;
  if (p.batch != 1 || p.num_heads_q != 1) return ATTEST_UNSUPPORTED;
  const auto column = [&](const attest_tensor& t) {
    return way == Way::blind_to_strides ? 1 : t.strides[3];
  };
  std::vector<float> weights(static_cast<std::size_t>(p.seqlen_k));
  for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
    float largest = -std::numeric_limits<float>::infinity(), sum = 0;
    for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
      float& score = weights[static_cast<std::size_t>(j)];
      score = static_cast<float>(p.softmax_scale) * product(row(*x->Q, i, way), column(*x->Q),
                                                            row(*x->K, j, way), column(*x->K),
                                                            p.head_dim_qk);
      largest = std::max(largest, score);
    }
    for (float& weight : weights) sum += weight = std::exp(weight - largest);
    auto* const out = reinterpret_cast<float*>(static_cast<char*>(x->O->data) + x->O->byte_offset);
    for (std::int64_t c = 0; c < p.head_dim_v; ++c) {
      float value = 0;
      for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
        value += weights[static_cast<std::size_t>(j)] * row(*x->V, j, way)[c * column(*x->V)];
      }
      out[i * x->O->strides[1] + c * x->O->strides[3]] = value / sum;
    }
  }
  return ATTEST_OK;
}

LawResult checked(Way way, std::uint32_t more, const char* problem) {
  attest_limits one{};
  one.struct_size = sizeof one;
  one.most_heads_q = one.most_batch = 1;
  attest_kernel kernel{};
  kernel.description.directions = ATTEST_FORWARD;
  kernel.description.dtypes = 1U << ATTEST_F32;
  kernel.description.features = ATTEST_ANY_STRIDES | more;
  kernel.description.limits = &one;
  kernel.self = &way;
  kernel.forward = forward;
  const Case c{Problem::parse(problem), Values::normal, 1, 1};
  return find_law("layout_independence").check(kernel, c);
}

}  // namespace

TEST_CASE("a kernel that chooses its way by the strides stays within its bounds", "[layout]") {
  const Way lanes = Way::lanes_where_contiguous;
  for (const char* problem : {"sq=17,d=40", "sq=17,d=40,strides=interleaved"}) {
    CAPTURE(problem);
    CHECK(checked(lanes, 0, problem).verdict == Verdict::passed);
    const LawResult bits = checked(lanes, ATTEST_LAYOUT_BITS, problem);
    CHECK(bits.verdict == Verdict::violated);
    CHECK(bits.message.find("differs from packed: ") != std::string::npos);
  }
}

TEST_CASE("a kernel that does not look at the strides is refused without a claim", "[layout]") {
  const Way blind = Way::blind_to_strides;
  const LawResult result = checked(blind, 0, "sq=17,d=40,strides=interleaved");
  CHECK(result.verdict == Verdict::violated);
  CHECK(result.message.find("layout bshd with strides interleaved differs from packed: ") == 0);
}

// One head of a packed tensor is one head of every sequence in it.
TEST_CASE("packed sequences have each a gradient of a bias of their own", "[layout]") {
  const attest_kernel& right = fixtures::defective_kernel(fixtures::Defect::none);
  for (const char* bias : {"bqk_drawn_3", "bhqk_drawn_3", "bh_drawn_3", "qk_drawn_3"}) {
    const Case c{
        Problem::parse("hq=2,hkv=2,d=8,layout=thd,mask=cu_5x4_3x6_7x2,bias=" + std::string(bias)),
        Values::normal, 3, 1};
    CAPTURE(bias);
    CHECK(find_law("head_independence").check(right, c).verdict == Verdict::passed);
  }
}

}  // namespace attest::proptest
