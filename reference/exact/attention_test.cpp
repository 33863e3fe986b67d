// Promises of the reference beside its accuracy (oracle_test.cpp): conventions, layouts, values
// that reach no result, refusals.
#include "reference/exact/attention.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "reference/testing/setting.hpp"

namespace attest::reference {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.view().size() == b.view().size() &&
         std::memcmp(a.doubles(), b.doubles(),
                     static_cast<std::size_t>(a.view().size()) * sizeof(double)) == 0;
}

bool finite(const Tensor& tensor) {
  return std::all_of(tensor.doubles(), tensor.doubles() + tensor.view().size(),
                     [](double x) { return std::isfinite(x); });
}

Forward forward_of(const Setting& in) {
  return forward(in.problem, {}, in.Q.view(), in.K.view(), in.V.view());
}

Backward backward_of(const Setting& in) {
  return backward(in.problem, in.Q.view(), in.K.view(), in.V.view(), in.cotangents());
}

TEST_CASE("rows without a visible key follow the convention", "[reference]") {
  const Setting in("sq=3,sk=2,d=2,mask=causal_br", 1, 1, 3);
  const auto at = [&](EmptyRow convention) {
    Conventions conventions;
    conventions.empty_row = convention;
    return forward(in.problem, conventions, in.Q.view(), in.K.view(), in.V.view());
  };
  CHECK(at(EmptyRow::zero_neg_inf).O(0, 0, 0, 1) == 0);
  CHECK(at(EmptyRow::zero_neg_inf).LSE(0, 0, 0) == -kInfinity);
  CHECK(at(EmptyRow::zero_pos_inf).O(0, 0, 0, 1) == 0);
  CHECK(at(EmptyRow::zero_pos_inf).LSE(0, 0, 0) == kInfinity);
  CHECK(std::isnan(at(EmptyRow::nan).O(0, 0, 0, 0)));
  CHECK(std::isnan(at(EmptyRow::nan).LSE(0, 0, 0)));
  CHECK(std::isfinite(at(EmptyRow::nan).O(0, 1, 0, 0)));
  CHECK(at(EmptyRow::zero_zero).O(0, 0, 0, 1) == 0);
  CHECK(at(EmptyRow::zero_zero).LSE(0, 0, 0) == 0);
  CHECK(at(EmptyRow::zero_zero).LSE(0, 0, 1) == at(EmptyRow::zero_neg_inf).LSE(0, 0, 1));
  CHECK(backward_of(in).dQ(0, 0, 0, 0) == 0);
}

TEST_CASE("LSE in base two", "[reference]") {
  const Setting in("sq=2,sk=4,d=2,scale=0", 1, 1, 3);
  Conventions conventions;
  conventions.lse_base = LseBase::two;
  const Forward got = forward(in.problem, conventions, in.Q.view(), in.K.view(), in.V.view());
  // log, product and the constant log2(e) err by one unit each, of a result of 2.
  CHECK(std::abs(got.LSE(0, 0, 0) - 2) <= 2 * 4 * unit_roundoff(DType::f64));
}

TEST_CASE("sequences without queries or keys", "[reference]") {
  const Setting no_keys("b=2,sq=3,sk=0,d=2", 1, 1, 3);
  const Forward got = forward_of(no_keys);
  CHECK(got.O(1, 2, 0, 1) == 0);
  CHECK(got.LSE(1, 0, 2) == -kInfinity);
  CHECK(backward_of(no_keys).dQ(0, 1, 0, 1) == 0);
  const Setting no_queries("b=2,sq=0,sk=3,d=2", 1, 1, 3);
  CHECK(forward_of(no_queries).O.view().size() == 0);
  CHECK(backward_of(no_queries).dK(1, 2, 0, 1) == 0);
  CHECK(backward_of(no_queries).dV(1, 2, 0, 1) == 0);
}

TEST_CASE("keys that nobody sees may hold anything", "[reference]") {
  for (const std::string text : {"b=2,hq=2,hkv=1,sq=4,sk=6,d=3,mask=lengths_4_5",
                                 "b=2,hq=2,hkv=1,sq=4,sk=6,d=3,softcap=2,mask=causal_tl"}) {
    for (const double value : {kNan, kInfinity, -kInfinity, 1e300}) {
      INFO(text << " with " << value);
      Setting in(text, 1, 1, 11);
      for (const Sequence& sequence : in.problem.sequences()) {
        const std::int64_t seen = std::min<std::int64_t>(sequence.visible_keys, 5);
        for (std::int64_t j = seen; j < 6; ++j) {
          for (std::int64_t c = 0; c < 3; ++c) {
            in.K.set(0, sequence.tensor_batch, j, 0, c);
            in.V.set(0, sequence.tensor_batch, j, 0, c);
          }
        }
      }
      if (in.problem.mask.banded())
        REQUIRE(!in.problem.mask.visible(in.problem.sequences()[0], 3, 4));
      const Forward clean = forward_of(in);
      const Backward clean_gradients = backward_of(in);
      for (const Sequence& sequence : in.problem.sequences()) {
        for (std::int64_t c = 0; c < 3; ++c) {
          in.K.set(value, sequence.tensor_batch, 5, 0, c);
          in.V.set(value, sequence.tensor_batch, 5, 0, c);
        }
      }
      const Forward got = forward_of(in);
      const Backward gradients = backward_of(in);
      CHECK(same_bits(got.LSE, clean.LSE));
      // Another summation order when something is not finite: the same to rounding.
      CHECK(finite(got.O));
      CHECK(finite(gradients.dQ));
      CHECK(finite(gradients.dK));
      CHECK(finite(gradients.dV));
      CHECK(gradients.dK(0, 5, 0, 0) == 0);
      CHECK(gradients.dV(0, 5, 0, 0) == 0);
      CHECK(clean_gradients.dV(0, 5, 0, 0) == 0);
    }
  }
}

TEST_CASE("NaN in a visible key reaches every row that sees it, and no other", "[reference]") {
  Setting in("sq=5,sk=5,d=3,mask=causal_tl", 1, 1, 13);
  in.K.set(kNan, 0, 2, 0, 1);
  const Forward got = forward_of(in);
  const Backward gradients = backward_of(in);
  for (std::int64_t i = 0; i < 5; ++i) {
    CHECK(std::isnan(got.O(0, i, 0, 0)) == (i >= 2));
    CHECK(std::isnan(got.LSE(0, 0, i)) == (i >= 2));
    CHECK(std::isnan(gradients.dQ(0, i, 0, 0)) == (i >= 2));
  }
  CHECK(std::isnan(gradients.dV(0, 0, 0, 0)));  // row 2 sees key 0 as well
}

TEST_CASE("NaN in a gradient input reaches only what its row sees", "[reference]") {
  Setting in("sq=5,sk=5,d=3,mask=causal_tl", 1, 1, 13);
  in.dO.set(kNan, 0, 1, 0, 2);
  in.Q.set(kInfinity, 0, 2, 0, 0);
  const Backward got = backward_of(in);
  for (std::int64_t j = 0; j < 5; ++j) {
    CHECK(std::isnan(got.dK(0, j, 0, 0)) == (j <= 2));
    CHECK(std::isnan(got.dV(0, j, 0, 2)) == (j <= 2));
  }
}

TEST_CASE("the number of threads changes no bit", "[reference]") {
  const Setting in("b=3,hq=4,hkv=1,sq=150,sk=40,d=5,mask=causal_br", 1, 1, 23);
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const Forward alone = forward_of(in);
  const Backward alone_gradients = backward_of(in);
  for (const int count : {2, 3}) {
    omp_set_num_threads(count);
    CHECK(same_bits(forward_of(in).O, alone.O));
    const Backward gradients = backward_of(in);
    CHECK(same_bits(gradients.dQ, alone_gradients.dQ));
    CHECK(same_bits(gradients.dK, alone_gradients.dK));
    CHECK(same_bits(gradients.dV, alone_gradients.dV));
  }
  omp_set_num_threads(threads);
}

TEST_CASE("strides and dtypes change no bit", "[reference]") {
  const Setting in("b=2,hq=4,hkv=2,sq=5,sk=7,d=3,dv=2,mask=causal_br", 1, 1, 17);
  // Every value rounded to float32 in a layout (head_dim, heads, seqlen, batch), last axis first.
  const auto transposed = [](const Tensor& from) {
    std::vector<Axis> axes;
    for (std::size_t index = 4; index-- > 0;) axes.push_back(from.view().axis(index));
    return Tensor(from.view().name(), DType::f32, axes);
  };
  const auto copy = [](const Tensor& from, const TensorView& to, Tensor& rounded) {
    for (std::int64_t a = 0; a < to.extent(0); ++a) {
      for (std::int64_t b = 0; b < to.extent(1); ++b) {
        for (std::int64_t c = 0; c < to.extent(2); ++c) {
          for (std::int64_t d = 0; d < to.extent(3); ++d) {
            to.set(from(a, b, c, d), a, b, c, d);
            rounded.set(to(a, b, c, d), a, b, c, d);
          }
        }
      }
    }
  };
  Setting packed = in;
  const Tensor q = transposed(in.Q), k = transposed(in.K), v = transposed(in.V);
  const std::vector<std::size_t> reversed{3, 2, 1, 0};
  const TensorView Q = q.view().permuted(reversed), K = k.view().permuted(reversed),
                   V = v.view().permuted(reversed);
  copy(in.Q, Q, packed.Q);
  copy(in.K, K, packed.K);
  copy(in.V, V, packed.V);
  const Forward expected = forward_of(packed);
  const Forward got = forward(in.problem, {}, Q, K, V);
  CHECK(same_bits(got.O, expected.O));
  CHECK(same_bits(got.LSE, expected.LSE));
  const Backward gradients = backward(in.problem, Q, K, V, in.cotangents());
  CHECK(same_bits(gradients.dQ, backward_of(packed).dQ));
}

TEST_CASE("shapes that do not match are refused by name", "[reference]") {
  const Setting in("hq=2,sq=3,sk=4,d=2,dv=5", 1, 1, 3);
  const Setting longer("hq=2,sq=4,sk=5,d=2,dv=5", 1, 1, 3);
  const Setting wider("hq=2,sq=3,sk=4,d=3,dv=6", 1, 1, 3);
  const Setting heads("hq=4,sq=3,sk=4,d=2,dv=5", 1, 1, 3);
  const auto call = [&](const Tensor& Q, const Tensor& K, const Tensor& V) {
    return forward(in.problem, {}, Q.view(), K.view(), V.view());
  };
  CHECK_THROWS_WITH(call(longer.Q, in.K, in.V), "Q: seqlen_q is 4, but the problem needs 3");
  CHECK_THROWS_WITH(call(in.Q, longer.K, in.V), "K: seqlen_k is 5, but the problem needs 4");
  CHECK_THROWS_WITH(call(in.Q, wider.K, in.V), "K: head_dim_qk is 3, but the problem needs 2");
  CHECK_THROWS_WITH(call(in.Q, in.K, wider.V), "V: head_dim_v is 6, but the problem needs 5");
  CHECK_THROWS_WITH(call(heads.Q, in.K, in.V), "Q: num_heads_q is 4, but the problem needs 2");
  CHECK_THROWS_WITH(call(in.dLSE, in.K, in.V), "Q: 3 axes, but the problem needs 4");
  const auto gradient = [&](const Tensor& dO, const Tensor& dLSE) {
    return backward(in.problem, in.Q.view(), in.K.view(), in.V.view(), {dO.view(), &dLSE.view()});
  };
  CHECK_THROWS_WITH(gradient(wider.dO, in.dLSE), "dO: head_dim_v is 6, but the problem needs 5");
  CHECK_THROWS_WITH(gradient(in.dO, longer.dLSE), "dLSE: seqlen_q is 4, but the problem needs 3");
  Problem impossible = in.problem;
  impossible.num_heads_kv = 3;
  CHECK_THROWS_AS(forward(impossible, {}, in.Q.view(), in.K.view(), in.V.view()), InvalidProblem);
}

}  // namespace
}  // namespace attest::reference
