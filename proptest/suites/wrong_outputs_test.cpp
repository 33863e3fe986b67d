// Whatever a kernel returns, a law has a verdict on it and never throws; and of an output that is
// not the true one, some law refuses. Every class of wrong output in every output of an otherwise
// correct kernel, for every law.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/dtype/dtype.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"
#include "proptest/laws/law.hpp"

namespace attest::proptest {
namespace {

enum class Wrong { nan, plus_infinity, minus_infinity, zeros, stale, swapped, denormal };

constexpr std::pair<Wrong, const char*> kClasses[] = {
    {Wrong::nan, "NaN"},          {Wrong::plus_infinity, "+inf"}, {Wrong::minus_infinity, "-inf"},
    {Wrong::zeros, "zeros"},      {Wrong::stale, "stale"},        {Wrong::swapped, "swapped"},
    {Wrong::denormal, "denormal"}};

using Index = std::array<std::int64_t, 4>;

// The elements of an output, row-major, with their places.
std::vector<Index> places_of(const TensorView& view) {
  const auto extent = [&](std::size_t axis) { return axis < view.rank() ? view.extent(axis) : 1; };
  std::vector<Index> places;
  for (std::int64_t a = 0; a < extent(0); ++a) {
    for (std::int64_t b = 0; b < extent(1); ++b) {
      for (std::int64_t c = 0; c < extent(2); ++c) {
        for (std::int64_t d = 0; d < extent(3); ++d) places.push_back({a, b, c, d});
      }
    }
  }
  return places;
}

// The axis on which two slices are exchanged: heads where there are two, else rows.
std::size_t swapped_axis(const TensorView& view) {
  const std::size_t heads = view.rank() == 4 ? 2 : view.rank() == 3 ? 1 : 0;
  const std::size_t rows = view.rank() == 4 ? 1 : view.rank() == 3 ? 2 : 0;
  return view.extent(heads) > 1 ? heads : rows;
}

// Makes one output of every call wrong.
struct Spoiler {
  std::string output;
  Wrong wrong;
  const attest_kernel* sound;
  mutable std::vector<double> previous;  // right results of the call before
  mutable bool changed = false;

  void spoil(const std::string& name, const attest_tensor* tensor) const {
    if (name != output || tensor == nullptr) return;
    std::vector<std::string_view> axes{"a", "b", "c", "d"};
    axes.resize(static_cast<std::size_t>(tensor->ndim));
    const TensorView view = view_of(*tensor, name, axes);
    const std::vector<Index> places = places_of(view);
    std::vector<double> right;
    for (const auto& [a, b, c, d] : places) right.push_back(view(a, b, c, d));
    for (std::size_t k = 0; k < places.size(); ++k) {
      const auto& [a, b, c, d] = places[k];
      const double value = wrong_value(view, places, right, k);
      const bool same = value == right[k] || (std::isnan(value) && std::isnan(right[k]));
      changed = changed || !same;
      if (!same) view.set(value, a, b, c, d);
    }
    previous = right;
  }

  double wrong_value(const TensorView& view, const std::vector<Index>& places,
                     const std::vector<double>& right, std::size_t k) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    switch (wrong) {
      case Wrong::nan:
        return std::numeric_limits<double>::quiet_NaN();
      case Wrong::plus_infinity:
        return kInfinity;
      case Wrong::minus_infinity:
        return -kInfinity;
      case Wrong::zeros:
        return 0;
      case Wrong::stale:
        return k < previous.size() ? previous[k] : right[k];
      case Wrong::denormal:
        return underflow_unit(view.dtype());
      case Wrong::swapped:
        break;
    }
    Index other = places[k];
    const std::size_t axis = swapped_axis(view);
    if (view.extent(axis) < 2 || other[axis] > 1) return right[k];
    other[axis] = 1 - other[axis];
    const auto from = std::find(places.begin(), places.end(), other) - places.begin();
    return right[static_cast<std::size_t>(from)];
  }
};

const Spoiler& of(const void* self) { return *static_cast<const Spoiler*>(self); }

attest_status forward(const void* self, const attest_forward_args* args) {
  const attest_kernel& sound = *of(self).sound;
  const attest_status status = sound.forward(sound.self, args);
  of(self).spoil("O", args->O);
  of(self).spoil("LSE", args->LSE);
  return status;
}

attest_status backward(const void* self, const attest_backward_args* args) {
  const attest_kernel& sound = *of(self).sound;
  const attest_status status = sound.backward(sound.self, args);
  of(self).spoil("dQ", args->dQ);
  of(self).spoil("dK", args->dK);
  of(self).spoil("dV", args->dV);
  return status;
}

attest_status loss_gradient(const void* self, const attest_loss_args* args) {
  const attest_kernel& sound = *of(self).sound;
  const attest_status status = sound.loss_gradient(sound.self, args);
  of(self).spoil("dX", args->dX);
  of(self).spoil("dY", args->dY);
  return status;
}

// Every law on one wrong output; prints which of them refused it.
void judge_all(const attest_kernel& sound, const Case& c, const std::string& output,
               const std::pair<Wrong, const char*>& wrong) {
  INFO(c.problem.to_string() << " " << name(c.values) << ", " << wrong.second << " in " << output);
  std::string refusing;
  bool differs = false;
  for (const Law& law : laws()) {
    if (!concerns(law, sound.description)) continue;
    INFO(law.name);
    const Spoiler spoiler{output, wrong.first, &sound, {}};
    attest_kernel kernel = sound;
    kernel.self = const_cast<Spoiler*>(&spoiler);
    if (kernel.forward != nullptr) kernel.forward = forward;
    if (kernel.backward != nullptr) kernel.backward = backward;
    if (kernel.loss_gradient != nullptr) kernel.loss_gradient = loss_gradient;
    LawResult result;
    CHECK_NOTHROW(result = law.check(kernel, c));
    differs = differs || spoiler.changed;
    const bool refuses = result.verdict == Verdict::violated;
    if (refuses) {
      refusing += " " + std::string(law.name);
      CHECK_FALSE(result.message.empty());
      CHECK(spoiler.changed);  // of what is right nothing is refused
    }
  }
  std::printf("%-8s in %-3s refused by%s\n", wrong.second, output.c_str(), refusing.c_str());
  CHECK((!differs || !refusing.empty()));
}

}  // namespace

TEST_CASE("every law has a verdict on every wrong output", "[defects]") {
  const attest_kernel& attention = fixtures::defective_kernel(fixtures::Defect::none);
  for (const auto& [problem, values] :
       {std::pair("b=2,hq=4,hkv=2,sq=5,sk=9,d=4,mask=causal_br", Values::normal),
        std::pair("sq=1,sk=2,d=64", Values::negative_logits),
        std::pair("hq=2,sq=3,sk=4,d=2,dtype=bf16,mask=lengths_0", Values::normal)}) {
    const Case c{Problem::parse(problem), values, 3, 1};
    for (const char* output : {"O", "LSE", "dQ", "dK", "dV"}) {
      for (const auto& wrong : kClasses) judge_all(attention, c, output, wrong);
    }
  }
  const attest_kernel& loss = fixtures::defective_loss_kernel(fixtures::LossDefect::none);
  const Case c{Problem::parse("sq=5,d=3"), Values::normal, 3, 1};
  for (const char* output : {"dX", "dY"}) {
    for (const auto& wrong : kClasses) judge_all(loss, c, output, wrong);
  }
}

}  // namespace attest::proptest
