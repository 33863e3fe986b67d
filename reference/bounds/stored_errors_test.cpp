// The error that a stored O leaves in delta meets the other errors of an entry, where dP less delta
// is 0.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/testing/catch.hpp"
#include "reference/bounds/bounds.hpp"
#include "reference/testing/setting.hpp"

namespace attest::reference {
namespace {

double to_bf16(double value) { return float_from_bf16(bf16_from_float(static_cast<float>(value))); }

// A backward pass of one head that is exact but for what it is told to round to bf16.
struct Rounded {
  bool pairs = false;     // dS
  bool scaled_q = false;  // scale * Q, in both passes
};

// The exact pass, that of a kernel, and the bounds of its contract.
class Judged {
 public:
  Judged(const Setting& in, const Rounded& rounded)
      : in_(in),
        rounded_(rounded),
        rows_(in.problem.seqlen_q),
        keys_(in.problem.seqlen_k),
        columns_(in.problem.head_dim_qk),
        dQ_("dQ", DType::f64, in.problem.q_axes()),
        dK_("dK", DType::f64, in.problem.k_axes()) {
    Tensor Q = in.Q;
    if (rounded.scaled_q) {
      const double scale = in.problem.scale();
      for (std::int64_t i = 0; i < rows_; ++i) {
        for (std::int64_t c = 0; c < columns_; ++c) {
          Q.set(to_bf16(scale * in.Q(0, i, 0, c)) / scale, 0, i, 0, c);
        }
      }
    }
    Forward stored = forward(in.problem, {}, Q.view(), in.K.view(), in.V.view());
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t c = 0; c < in.problem.head_dim_v; ++c) {
        stored.O.set(to_bf16(stored.O(0, i, 0, c)), 0, i, 0, c);
      }
    }
    run(Q, stored);
    const Forward exact = forward(in.problem, {}, in.Q.view(), in.K.view(), in.V.view());
    const Backward gradients =
        backward(in.problem, in.Q.view(), in.K.view(), in.V.view(), {in.dO.view(), nullptr});
    attest_numerics declared{};
    declared.p_cast = rounded.pairs ? ATTEST_INPUT_DTYPE : 0;
    declared.scaled_q_roundoff = rounded.scaled_q ? unit_roundoff(DType::bf16) : 0;
    const BackwardBounds bounds = backward_bounds(
        in.problem, {}, resolve(declared, DType::bf16), in.Q.view(), in.K.view(), in.V.view(),
        {in.dO.view(), nullptr}, {stored.O.view(), stored.LSE.view()}, exact, gradients);
    dQ = worst(dQ_, gradients.dQ, bounds.dQ.probabilistic, rows_);
    dK = worst(dK_, gradients.dK, bounds.dK.probabilistic, keys_);
  }

  double dQ = 0, dK = 0;  // largest errors over their probabilistic bounds

 private:
  void run(const Tensor& Q, const Forward& stored) {
    const double scale = in_.problem.scale();
    const auto dot = [](const Tensor& a, std::int64_t i, const Tensor& b, std::int64_t j) {
      double sum = 0;
      for (std::int64_t c = 0; c < a.view().extent(3); ++c) sum += a(0, i, 0, c) * b(0, j, 0, c);
      return sum;
    };
    for (std::int64_t i = 0; i < rows_; ++i) {
      const double delta = dot(in_.dO, i, stored.O, i);
      for (std::int64_t j = 0; j < keys_; ++j) {
        const double P = std::exp(scale * dot(Q, i, in_.K, j) - stored.LSE(0, 0, i));
        const double dS = P * (dot(in_.dO, i, in_.V, j) - delta);
        const double factor = scale * (rounded_.pairs ? to_bf16(dS) : dS);
        for (std::int64_t c = 0; c < columns_; ++c) {
          dQ_.set(dQ_(0, i, 0, c) + factor * in_.K(0, j, 0, c), 0, i, 0, c);
          dK_.set(dK_(0, j, 0, c) + factor * in_.Q(0, i, 0, c), 0, j, 0, c);
        }
      }
    }
  }

  double worst(const Tensor& got, const Tensor& exact, const Tensor& bound, std::int64_t rows) {
    double most = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t c = 0; c < columns_; ++c) {
        const double error =
            std::abs(to_bf16(got(0, i, 0, c)) - exact(0, i, 0, c)) / bound(0, i, 0, c);
        most = std::max(most, error);
      }
    }
    return most;
  }

  const Setting& in_;
  Rounded rounded_;
  std::int64_t rows_, keys_, columns_;
  Tensor dQ_, dK_;
};

// dO is orthogonal to every row of V, so that dP is 0 and delta what O was rounded by.
void make_orthogonal(Setting& in) {
  for (std::int64_t i = 0; i < in.problem.seqlen_q; ++i) {
    in.dO.set(3, 0, i, 0, 0);
    in.dO.set(-1, 0, i, 0, 1);
  }
  for (std::int64_t j = 0; j < in.problem.seqlen_k; ++j) {
    const double v = to_bf16(in.V(0, j, 0, 0));
    in.V.set(v, 0, j, 0, 0);
    in.V.set(3 * v, 0, j, 0, 1);
  }
}

TEST_CASE("the cast of dS rounds what delta inherits", "[reference]") {
  double most = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Setting in("sq=1,sk=32,d=8,dv=2", 1, 1, 10 * seed);
    make_orthogonal(in);
    const Judged judged(in, {.pairs = true});
    CHECK(judged.dK <= 1);
    CHECK(judged.dQ <= 1);
    most = std::max(most, judged.dK);
  }
  CHECK(most > 0);
}

TEST_CASE("errors of P meet what delta inherits", "[reference]") {
  Setting in("sq=1,sk=2,d=2,dv=2", 1, 1, 3);
  make_orthogonal(in);
  const double q[] = {9, 5}, k[] = {5, -9}, v[] = {3, 8};
  for (std::int64_t c = 0; c < 2; ++c) {
    in.Q.set(q[c], 0, 0, 0, c);
    for (std::int64_t j = 0; j < 2; ++j) in.K.set(j == 0 ? k[c] : -k[c], 0, j, 0, c);
  }
  for (std::int64_t j = 0; j < 2; ++j) {
    for (std::int64_t c = 0; c < 2; ++c) in.V.set(c == 0 ? v[j] : 3 * v[j], 0, j, 0, c);
  }
  const Judged judged(in, {.scaled_q = true});
  CHECK(judged.dQ > 0);
  CHECK(judged.dQ <= 1);
  CHECK(judged.dK <= 1);
}

}  // namespace
}  // namespace attest::reference
