#pragma once

#include <array>
#include <boost/multiprecision/mpfr.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/problem.hpp"
#include "core/tensor.hpp"

/// The definition of attention as plain loops in 256-bit arithmetic. Slow on purpose: nothing is
/// shared with the float64 reference that it judges but the mask.
namespace attest::reference::oracle {

/// At least 256 significant bits.
using Real = boost::multiprecision::number<boost::multiprecision::mpfr_float_backend<78>,
                                           boost::multiprecision::et_off>;

/// A dense tensor of at most four axes.
class Array {
 public:
  Array() = default;
  explicit Array(const std::vector<Axis>& axes);
  explicit Array(const TensorView& view);

  Real& operator()(std::int64_t i0, std::int64_t i1 = 0, std::int64_t i2 = 0, std::int64_t i3 = 0) {
    return values_[index(i0, i1, i2, i3)];
  }
  const Real& operator()(std::int64_t i0, std::int64_t i1 = 0, std::int64_t i2 = 0,
                         std::int64_t i3 = 0) const {
    return values_[index(i0, i1, i2, i3)];
  }
  std::vector<Real>& values() { return values_; }
  const std::vector<Real>& values() const { return values_; }

 private:
  std::size_t index(std::int64_t i0, std::int64_t i1, std::int64_t i2, std::int64_t i3) const {
    return static_cast<std::size_t>(((i0 * extents_[1] + i1) * extents_[2] + i2) * extents_[3] +
                                    i3);
  }
  std::array<std::int64_t, 4> extents_{1, 1, 1, 1};
  std::vector<Real> values_;
};

struct Forward {
  Array O, LSE;  // empty rows: O = 0, LSE = 0 (judged elsewhere)
};

struct Gradients {
  Array dQ, dK, dV, dSinks, dBias;
};

/// One query row of one head: where it lies in the tensors, and its visible keys.
struct Row {
  std::int64_t batch = 0, query = 0, query_head = 0, kv_head = 0;
  std::int64_t sequence = 0, index = 0;  // its number, and the query within it
  std::int64_t first_key = 0;            // of the sequence
  std::vector<std::int64_t> keys;        // positions on the sequence axis of K and V
  std::vector<Real> product;             // scale * q.k
  std::vector<Real> capped;              // after softcap
  std::vector<Real> S;                   // after ALiBi and bias
  std::vector<Real> bias;
  std::vector<Real> slope;   // d capped / d product
  std::optional<Real> sink;  // its score, where there is a finite one
};

/// Holds what is added to numbers of the problem, where the pointers are not null.
struct Moved {
  const Array *sinks = nullptr, *bias = nullptr;
};

/// Returns the element of the bias, or its gradient, of one of the row's keys.
template <class OfBias>
auto& element_of_bias(const Problem& problem, const Row& row, std::int64_t key, OfBias& bias) {
  const auto at = [&](std::size_t axis, std::int64_t index) {
    return problem.bias.axes[axis] ? index : 0;
  };
  return bias(at(0, row.sequence), at(1, row.query_head), at(2, row.index),
              at(3, key - row.first_key));
}

/// Visits every row that sees a key or has a sink.
void for_each_row(const Problem& problem, const Array& Q, const Array& K,
                  const std::function<void(Row&)>& visit, const Moved& moved = {});

/// Turns scores into probabilities, returns LSE; a sink's probability is what they lack to 1.
Real normalize(std::vector<Real>& S, const std::optional<Real>& sink = std::nullopt);

/// Axes as in core/problem.hpp. Cost: batch heads seqlen_q seqlen_k (head_dim_qk + head_dim_v).
Forward forward(const Problem& problem, const Array& Q, const Array& K, const Array& V,
                const Moved& moved = {});

/// Gradients of <dO, O> + <dLSE, LSE>.
Gradients backward(const Problem& problem, const Array& Q, const Array& K, const Array& V,
                   const Array& dO, const Array& dLSE);

/// <dO, O> + <dLSE, LSE>, the functional whose gradients `backward` returns; rows without a visible
/// key count nothing.
Real functional(const Problem& problem, const Array& Q, const Array& K, const Array& V,
                const Array& dO, const Array& dLSE, const Moved& moved = {});

/// dX and dY of L(X, Y), (head_dim, head_dim), by the chain rule entry by entry.
struct LossGradients {
  Array dX, dY;
};
LossGradients loss_gradient(const Array& A1, const Array& A2, const Array& A3, const Array& E,
                            const Array& X, const Array& Y, std::int64_t seqlen,
                            std::int64_t head_dim);

/// L(X, Y) of reference/exact/loss_gradient.hpp; all axes (rows, columns).
Real loss(const Array& A1, const Array& A2, const Array& A3, const Array& E, const Array& X,
          const Array& Y, std::int64_t seqlen, std::int64_t head_dim);

}  // namespace attest::reference::oracle
