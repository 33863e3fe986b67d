#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "proptest/signatures/alternative.hpp"
#include "proptest/signatures/deviation.hpp"
#include "proptest/signatures/level_alternatives.hpp"

namespace attest::proptest {
namespace {

using reference::BackwardBounds;
using reference::ErrorBound;

std::vector<Axis> axes_of(const Tensor& tensor) {
  std::vector<Axis> axes;
  for (std::size_t axis = 0; axis < tensor.view().rank(); ++axis) {
    axes.push_back(tensor.view().axis(axis));
  }
  return axes;
}

Tensor times(const Tensor& tensor, double factor) {
  Tensor product = tensor;
  for (std::int64_t e = 0; e < product.view().size(); ++e) product.doubles()[e] *= factor;
  return product;
}

ErrorBound times(const ErrorBound& bound, double factor) {
  return {times(bound.deterministic, factor), times(bound.probabilistic, factor),
          times(bound.sigma, factor)};
}

class Gradients {
 public:
  Gradients(const Scene& scene, Suspects only)
      : scene_(scene),
        only_(only),
        plain_(reference::forward(scene.problem, {}, scene.values.Q.view(), scene.values.K.view(),
                                  scene.values.V.view())),
        given_{scene.values.dO.view(),
               uses_dlse(scene.description, scene.seed) ? &scene.values.dLSE.view() : nullptr} {}

  std::vector<Alternative> take() { return std::move(alternatives_); }

  bool wanted(const std::string& name) const {
    return only_ == nullptr || std::any_of(only_->begin(), only_->end(),
                                           [&](const Suspect& one) { return one.first == name; });
  }

  const reference::Cotangents& given() const { return given_; }
  const reference::Forward& plain() const { return plain_; }

  // The exact gradients of other cotangents, with their own bounds.
  std::vector<Expected> other(const reference::Cotangents& cotangents) const {
    const InputValues& in = scene_.values;
    const TensorView &Q = in.Q.view(), &K = in.K.view(), &V = in.V.view();
    const Conventions conventions = conventions_of(scene_.description);
    const Numerics numerics = resolve(scene_.description.numerics, scene_.problem.dtype);
    const reference::Backward exact = reference::backward(scene_.problem, Q, K, V, cotangents);
    const BackwardBounds bounds =
        reference::backward_bounds(scene_.problem, conventions, numerics, Q, K, V, cotangents,
                                   stored_by(scene_.run), plain_, exact);
    return {{"dQ", exact.dQ, bounds.dQ}, {"dK", exact.dK, bounds.dK}, {"dV", exact.dV, bounds.dV}};
  }

  std::vector<Expected> truth() const {
    const reference::Backward& exact = scene_.truth.backward();
    const BackwardBounds& bounds = scene_.truth.backward_bounds(scene_.run);
    return {{"dQ", exact.dQ, bounds.dQ}, {"dK", exact.dK, bounds.dK}, {"dV", exact.dV, bounds.dV}};
  }

  void deviant(const std::string& name, const std::string& words, const Problem& problem,
               Deviation deviation) {
    if (!wanted(name)) return;
    const InputValues& in = scene_.values;
    if (!right_) {
      right_ = deviant_backward(scene_.problem, in, given_, plain_, Deviation::none);
    }
    const DeviantBackward wrong = deviant_backward(problem, in, given_, plain_, deviation);
    const BackwardBounds& bounds = scene_.truth.backward_bounds(scene_.run);
    const auto expect = [&](const char* output, const Weighed& of, const Weighed& right,
                            const ErrorBound& bound) {
      return Expected{
          output, of.value,
          bound_like(bound, right.magnitude, of.value, of.magnitude, scene_.problem.dtype)};
    };
    add(name, words,
        {expect("dQ", wrong.dQ, right_->dQ, bounds.dQ),
         expect("dK", wrong.dK, right_->dK, bounds.dK),
         expect("dV", wrong.dV, right_->dV, bounds.dV)});
  }

  // The output's own rounding does not shrink with a factor below 1.
  ErrorBound with_rounding(ErrorBound bound, const Tensor& value) const {
    const DType dtype = scene_.problem.dtype;
    for (Tensor ErrorBound::*part :
         {&ErrorBound::deterministic, &ErrorBound::probabilistic, &ErrorBound::sigma}) {
      for (std::int64_t e = 0; e < value.view().size(); ++e) {
        (bound.*part).doubles()[e] +=
            unit_roundoff(dtype) * std::abs(value.doubles()[e]) + underflow_unit(dtype);
      }
    }
    return bound;
  }

  // Some of the three outputs times a factor, the others as they should be.
  void scaled(const std::string& name, const std::string& words,
              const std::vector<std::string>& which, double factor) {
    std::vector<Expected> outputs = truth();
    for (Expected& one : outputs) {
      for (const std::string& output : which) {
        if (one.output != output) continue;
        one.value = times(one.value, factor);
        one.bound = with_rounding(times(one.bound, std::abs(factor)), one.value);
      }
    }
    add(name, words, outputs);
  }

  void append(Alternative other) { alternatives_.push_back(std::move(other)); }

  void add(const std::string& name, const std::string& words, std::vector<Expected> outputs) {
    alternatives_.push_back({name, "the gradients " + words, std::move(outputs)});
  }

  // sum over c of a(row, c) b(row, c), plus `factor` times the dLSE given.
  Tensor row_products(const TensorView& a, const TensorView& b, double factor) const {
    Tensor sums("dLSE", DType::f64, scene_.problem.lse_axes());
    const TensorView& view = sums.view();
    for (std::int64_t n = 0; n < view.extent(0); ++n) {
      for (std::int64_t h = 0; h < view.extent(1); ++h) {
        for (std::int64_t i = 0; i < view.extent(2); ++i) {
          double sum = given_.dLSE == nullptr ? 0 : factor * (*given_.dLSE)(n, h, i);
          for (std::int64_t c = 0; c < a.extent(3); ++c) sum += a(n, i, h, c) * b(n, i, h, c);
          sums.set(sum, n, h, i);
        }
      }
    }
    return sums;
  }

 private:
  const Scene& scene_;
  Suspects only_;
  reference::Forward plain_;
  reference::Cotangents given_;
  std::optional<DeviantBackward> right_;
  std::vector<Alternative> alternatives_;
};

// The reference takes dLSE from delta: with another dLSE it answers for another delta.
void add_delta(const Scene& scene, Gradients& gradients) {
  const TensorView& dO = scene.values.dO.view();
  const TensorView& O = gradients.plain().O.view();
  const auto with = [&](const char* name, const char* words, const Tensor& dLSE) {
    if (!gradients.wanted(name)) return;
    gradients.add(name, words, gradients.other({dO, &dLSE.view()}));
  };
  constexpr double kDropped = 0, kKept = 1;
  const Tensor no_delta = gradients.row_products(dO, O, kDropped);
  with("delta_omitted", "without delta, the row's sum of dO times O", no_delta);
  if (gradients.given().dLSE != nullptr) {
    with("delta_omitted", "without delta, the row's sum of dO times O",
         gradients.row_products(dO, O, kKept));
    if (gradients.wanted("dlse_ignored")) {
      gradients.add("dlse_ignored", "without the gradient of LSE", gradients.other({dO, nullptr}));
    }
    Tensor negative = scene.values.dLSE;
    for (std::int64_t b = 0; b < negative.view().extent(0); ++b) {
      for (std::int64_t h = 0; h < negative.view().extent(1); ++h) {
        for (std::int64_t i = 0; i < negative.view().extent(2); ++i) {
          negative.set(-negative(b, h, i), b, h, i);
        }
      }
    }
    with("dlse_sign", "with the gradient of LSE of the opposite sign", negative);
  }
  // dLSE' = sum dO O - sum dO dO + dLSE
  Tensor squares = gradients.row_products(dO, O, kKept);
  const Tensor own = gradients.row_products(dO, dO, kDropped);
  for (std::int64_t e = 0; e < own.view().size(); ++e) squares.doubles()[e] -= own.doubles()[e];
  with("delta_from_do", "with delta as the row's sum of dO squared", squares);
}

void add_groups(const Scene& scene, Gradients& gradients) {
  const Problem& p = scene.problem;
  const bool wanted = gradients.wanted("dk_first_head") || gradients.wanted("group_first_head");
  if (p.group_size() == 1 || !wanted) return;
  InputValues first = scene.values;
  const auto silent = [&](std::int64_t h) { return h % p.group_size() != 0; };
  const TensorView& dO = first.dO.view();
  for (std::int64_t b = 0; b < dO.extent(0); ++b) {
    for (std::int64_t h = 0; h < dO.extent(2); ++h) {
      for (std::int64_t i = 0; i < dO.extent(1) && silent(h); ++i) {
        for (std::int64_t c = 0; c < dO.extent(3); ++c) first.dO.set(0, b, i, h, c);
        first.dLSE.set(0, b, h, i);
      }
    }
  }
  const auto of_first = gradients.other(
      {first.dO.view(), gradients.given().dLSE == nullptr ? nullptr : &first.dLSE.view()});
  std::vector<Expected> outputs = gradients.truth();
  outputs[1] = of_first[1];
  gradients.add("dk_first_head", "where only the first query head of a group reaches dK", outputs);
  outputs[2] = of_first[2];
  gradients.add("group_first_head", "where only the first query head of a group reaches dK and dV",
                outputs);
}

}  // namespace

std::vector<Alternative> backward_alternatives(const Scene& scene, Suspects only) {
  Gradients gradients(scene, only);
  const Problem& p = scene.problem;
  gradients.scaled("zero_gradients", "that are all zero", {"dQ", "dK", "dV"}, 0);
  gradients.scaled("zero_dq", "where dQ is zero", {"dQ"}, 0);
  gradients.scaled("zero_dk", "where dK is zero", {"dK"}, 0);
  gradients.scaled("zero_dv", "where dV is zero", {"dV"}, 0);
  const double scale = p.scale();
  if (scale != 0) {
    gradients.scaled("dq_without_scale", "where dQ lacks the softmax scale", {"dQ"}, 1 / scale);
    gradients.scaled("dk_without_scale", "where dK lacks the softmax scale", {"dK"}, 1 / scale);
    gradients.scaled("gradients_without_scale", "where dQ and dK lack the softmax scale",
                     {"dQ", "dK"}, 1 / scale);
    gradients.scaled("dv_scaled", "where dV has the softmax scale", {"dV"}, scale);
    gradients.scaled("dq_scaled_twice", "where dQ has the softmax scale twice", {"dQ"}, scale);
    gradients.scaled("dk_scaled_twice", "where dK has the softmax scale twice", {"dK"}, scale);
  }
  add_delta(scene, gradients);
  add_groups(scene, gradients);
  std::vector<Expected> swapped = gradients.truth();
  if (axes_of(swapped[0].value).size() == axes_of(swapped[1].value).size() &&
      p.tensor_seqlen_q() == p.tensor_seqlen_k() && p.num_heads_q == p.num_heads_kv) {
    std::swap(swapped[0].value, swapped[1].value);
    std::swap(swapped[0].bound, swapped[1].bound);
    gradients.add("dq_dk_swapped", "with dQ and dK exchanged", swapped);
  }
  for (const MaskMistake& mistake : mask_mistakes(p)) {
    gradients.deviant(mistake.name, mistake.words, mistake.problem, Deviation::none);
  }
  if (p.softcap > 0) {
    gradients.deviant("softcap_slope_omitted", "without the derivative of the softcap", p,
                      Deviation::softcap_slope_omitted);
  }
  gradients.deviant("lse_of_previous_row", "with the LSE of the row before", p,
                    Deviation::lse_of_previous_row);
  for (Alternative& other : low_backward_alternatives(scene)) {
    if (gradients.wanted(other.name)) gradients.append(std::move(other));
  }
  return gradients.take();
}

}  // namespace attest::proptest
