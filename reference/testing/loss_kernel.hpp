#pragma once

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/dtype/dtype.hpp"
#include "reference/exact/loss_gradient.hpp"

/// Loss gradients in float32, operation by operation: every legitimate way, and wrong ones.
namespace attest::reference {

using Floats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Each bit picks one of two legitimate ways.
enum LossChoice : unsigned {
  backwards = 1,       // sums from the last term to the first
  pairwise = 2,        // sums by halves
  x_left = 4,          // (A1^T p) A2 and (A3^T f^T) c
  delta_keys = 8,      // delta from f o q
  p_split = 16,        // f q - delta f
  from_lse = 32,       // weights from the LSE
  binary_exp = 64,     // exp2 with a folded constant
  scores_right = 128,  // A1 (X A2^T)
  online = 256,        // f h tile by tile with a running maximum
  all_choices = 512
};

enum class LossDefect {
  none,
  all_zero,
  delta_omitted,
  target_omitted,
  weights_bf16,
  scores_one_percent,
  key_dropped,
  weights_not_normalised,
  c_transposed_sign,
  last_row_dropped,
  dx_transposed
};

/// Arithmetic that a contract may have in place of float32 to nearest; an empty function leaves
/// float32 to nearest.
struct LossArithmetic {
  std::function<float(float)> rounded;      // the result of every operation
  std::function<float(float)> operand;      // what enters a sum of products
  std::function<float(float)> exponential;  // the result of an exponential
  /// init + the sum of a[k] b[k]; in place of the orders that LossChoice has.
  std::function<float(std::span<const float> a, std::span<const float> b, float init)> products;
  std::function<float(float a, float b)> rescaled;  // the product of a running sum and a rescale
};

class LossKernel {
 public:
  /// `chain` > 0: every sum over rows or keys adds chains of that many terms.
  LossKernel(unsigned choices, LossDefect defect, Eigen::Index chain = 0,
             LossArithmetic arithmetic = {})
      : choices_(choices), defect_(defect), chain_(chain), arithmetic_(std::move(arithmetic)) {}

  std::pair<Floats, Floats> operator()(const LossInputs& in) const {
    Floats A1 = floats(in.A1);
    const Floats A2 = floats(in.A2), A3 = floats(in.A3), E = floats(in.E), X = floats(in.X);
    Floats S = has(scores_right) ? product(A1, product(X, A2.transpose()))
                                 : product(product(A1, X), A2.transpose());
    if (defect_ == LossDefect::scores_one_percent) S *= 1.01F;
    if (defect_ == LossDefect::key_dropped) {
      S.col(S.cols() / 2).setConstant(-std::numeric_limits<float>::infinity());
    }
    Floats f = weights(S);
    const Floats h = product(A3, floats(in.Y)), fh = has(online) ? online_sum(S, h) : product(f, h);
    Floats c = fh;
    if (defect_ != LossDefect::target_omitted) {
      for (Eigen::Index k = 0; k < c.size(); ++k) c.data()[k] = rounded(fh.data()[k] - E.data()[k]);
    }
    const Floats q = product(c, h.transpose());
    Floats p(f.rows(), f.cols());
    for (Eigen::Index i = 0; i < p.rows(); ++i) {
      float delta = has(delta_keys) ? dot(f.row(i), q.row(i)) : dot(c.row(i), fh.row(i));
      if (defect_ == LossDefect::delta_omitted) delta = 0;
      for (Eigen::Index j = 0; j < p.cols(); ++j) {
        p(i, j) = rounded(has(p_split) ? rounded(f(i, j) * q(i, j)) - rounded(delta * f(i, j))
                                       : f(i, j) * rounded(q(i, j) - delta));
      }
    }
    if (defect_ == LossDefect::last_row_dropped)
      p.bottomRows(1).setZero(), f.bottomRows(1).setZero();
    if (defect_ == LossDefect::c_transposed_sign) c = -c, p = -p;
    Floats dX = between(A1, p, A2), dY = between(A3, f.transpose(), c);
    if (defect_ == LossDefect::all_zero) dX.setZero(), dY.setZero();
    if (defect_ == LossDefect::dx_transposed) dX = Floats(dX.transpose());
    return {dX, dY};
  }

 private:
  bool has(LossChoice choice) const { return (choices_ & choice) != 0; }

  float rounded(float value) const {
    return arithmetic_.rounded ? arithmetic_.rounded(value) : value;
  }

  float rescaled(float value, float factor) const {
    return arithmetic_.rescaled ? arithmetic_.rescaled(value, factor) : rounded(value * factor);
  }

  static Floats floats(const TensorView& tensor) {
    Floats matrix(tensor.extent(0), tensor.extent(1));
    for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
      for (Eigen::Index j = 0; j < matrix.cols(); ++j) {
        matrix(i, j) = static_cast<float>(tensor(i, j));
      }
    }
    return matrix;
  }

  float chain_sum(const float* terms, std::size_t count) const {
    float total = 0;
    for (std::size_t k = 0; k < count; ++k) {
      total = rounded(total + terms[has(backwards) ? count - 1 - k : k]);
    }
    return total;
  }

  float sum(std::vector<float>& terms) const {
    if (has(pairwise)) {
      if (has(backwards)) std::reverse(terms.begin(), terms.end());
      for (std::size_t size = terms.size(); size > 1; size = (size + 1) / 2) {
        for (std::size_t k = 0; k < size / 2; ++k) {
          terms[k] = rounded(terms[2 * k] + terms[2 * k + 1]);
        }
        if (size % 2 == 1) terms[size / 2] = terms[size - 1];
      }
      return terms[0];
    }
    if (chain_ == 0) return chain_sum(terms.data(), terms.size());
    std::vector<float> chains;
    for (std::size_t k = 0; k < terms.size(); k += static_cast<std::size_t>(chain_)) {
      chains.push_back(chain_sum(terms.data() + k,
                                 std::min(terms.size() - k, static_cast<std::size_t>(chain_))));
    }
    return chain_sum(chains.data(), chains.size());
  }

  // sum + a b.
  float added(float sum, float a, float b) const {
    if (!arithmetic_.operand && !arithmetic_.products) return rounded(sum + rounded(a * b));
    const float left = arithmetic_.operand ? arithmetic_.operand(a) : a;
    const float right = arithmetic_.operand ? arithmetic_.operand(b) : b;
    if (!arithmetic_.products) return rounded(sum + rounded(left * right));
    return arithmetic_.products(std::span(&left, 1), std::span(&right, 1), sum);
  }

  template <typename A, typename B>
  float dot(const A& a, const B& b) const {
    const auto size = static_cast<std::size_t>(a.size());
    if (arithmetic_.operand || arithmetic_.products) return contract_dot(a, b);
    terms_.resize(size);
    for (std::size_t k = 0; k < size; ++k) {
      const auto index = static_cast<Eigen::Index>(k);
      terms_[k] = rounded(a(index) * b(index));
    }
    return sum(terms_);
  }

  template <typename A, typename B>
  float contract_dot(const A& a, const B& b) const {
    std::vector<float> left, right;
    for (Eigen::Index k = 0; k < a.size(); ++k) {
      left.push_back(arithmetic_.operand ? arithmetic_.operand(a(k)) : a(k));
      right.push_back(arithmetic_.operand ? arithmetic_.operand(b(k)) : b(k));
    }
    if (arithmetic_.products) return arithmetic_.products(left, right, 0);
    for (std::size_t k = 0; k < left.size(); ++k) left[k] = rounded(left[k] * right[k]);
    return sum(left);
  }

  Floats product(const Floats& a, const Floats& b) const {
    const Floats columns = b.transpose();
    Floats result(a.rows(), b.cols());
    for (Eigen::Index i = 0; i < a.rows(); ++i) {
      for (Eigen::Index j = 0; j < b.cols(); ++j) result(i, j) = dot(a.row(i), columns.row(j));
    }
    return result;
  }

  // a^T b c in either association.
  Floats between(const Floats& a, const Floats& b, const Floats& c) const {
    return has(x_left) ? product(product(a.transpose(), b), c)
                       : product(a.transpose(), product(b, c));
  }

  float exponential(float x) const {
    constexpr float kLog2E = 1.44269504F;
    const float result =
        rounded(has(binary_exp) ? std::exp2(rounded(x * rounded(kLog2E))) : std::exp(x));
    return arithmetic_.exponential ? arithmetic_.exponential(result) : result;
  }

  Floats weights(const Floats& S) const {
    Floats f = S;
    for (Eigen::Index i = 0; i < S.rows(); ++i) {
      const float m = S.row(i).maxCoeff();
      std::vector<float> terms;
      for (Eigen::Index j = 0; j < S.cols(); ++j) {
        terms.push_back(exponential(rounded(S(i, j) - m)));
      }
      std::vector<float> summands = terms;
      const float l = sum(summands), lse = rounded(m + rounded(std::log(l)));
      for (Eigen::Index j = 0; j < S.cols(); ++j) {
        f(i, j) = has(from_lse) ? exponential(rounded(S(i, j) - lse))
                                : rounded(terms[static_cast<std::size_t>(j)] / l);
        if (defect_ == LossDefect::weights_not_normalised)
          f(i, j) = terms[static_cast<std::size_t>(j)];
        if (defect_ == LossDefect::weights_bf16) {
          f(i, j) = float_from_bf16(bf16_from_float(f(i, j)));
        }
      }
    }
    return f;
  }

  Floats online_sum(const Floats& S, const Floats& h) const {
    constexpr Eigen::Index kTile = 4;
    Floats O = Floats::Zero(S.rows(), h.cols());
    for (Eigen::Index i = 0; i < S.rows(); ++i) {
      float m = -std::numeric_limits<float>::infinity(), l = 0;
      for (Eigen::Index first = 0; first < S.cols(); first += kTile) {
        const Eigen::Index count = std::min(kTile, S.cols() - first);
        const float maximum = std::max(m, S.row(i).segment(first, count).maxCoeff());
        const float rescale = first == 0 ? 0 : exponential(rounded(m - maximum));
        l = rounded(l * rescale);
        for (Eigen::Index c = 0; c < O.cols(); ++c) O(i, c) = rescaled(O(i, c), rescale);
        for (Eigen::Index j = first; j < first + count; ++j) {
          const float weight = exponential(rounded(S(i, j) - maximum));
          l = rounded(l + weight);
          for (Eigen::Index c = 0; c < O.cols(); ++c) O(i, c) = added(O(i, c), weight, h(j, c));
        }
        m = maximum;
      }
      for (Eigen::Index c = 0; c < O.cols(); ++c) O(i, c) = rounded(O(i, c) / l);
    }
    return O;
  }

  unsigned choices_;
  LossDefect defect_;
  Eigen::Index chain_;
  LossArithmetic arithmetic_;
  mutable std::vector<float> terms_;
};

}  // namespace attest::reference
