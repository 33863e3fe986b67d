#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/problem.hpp"
#include "proptest/judge/run.hpp"
#include "proptest/values/values.hpp"

namespace attest::certify {

/// Memory of one problem: inputs, and the outputs every candidate writes in turn.
class Operands {
 public:
  /// Inputs hold zeros.
  Operands(const Problem& problem, std::int32_t threads,
           std::uint32_t features = ATTEST_BOOLEAN_MASK);

  /// The inputs of a seed, rounded to the problem's dtype.
  void fill(const proptest::InputValues& values);

  attest_status call(const attest_kernel& kernel, Direction direction);

  /// Has every output of a direction hold NaN, so that none of an earlier call is left.
  void poison(Direction direction);

  /// Copies of the tensors that a direction writes: O and LSE; or dQ, dK and dV, then dSinks and
  /// dBias of a problem that has sinks and a bias.
  std::vector<Tensor> outputs(Direction direction) const;

 private:
  // Where frameworks place memory too: no vector of an aligned tile lies in two cache lines.
  static constexpr std::align_val_t kCacheLine{64};
  struct Free {
    void operator()(std::byte* data) const { ::operator delete(data, kCacheLine); }
  };
  struct Space {
    const attest_kernel* owner;
    std::uint32_t direction;
    std::size_t bytes;
    std::unique_ptr<std::byte, Free> data;
  };

  bool has_sinks() const { return problem_.sinks != Sinks::none; }
  bool has_bias() const { return problem_.bias.kind != Bias::Kind::none; }
  std::vector<const Tensor*> written(Direction direction) const;
  const Space& space_for(const attest_kernel& kernel, Direction direction);

  Problem problem_;
  AbiProblem form_;
  Tensor Q_, K_, V_, dO_, O_, LSE_, dQ_, dK_, dV_, dSinks_;
  Tensor bias_, dBias_;    // as long as the bias' own axes
  TensorView whole_bias_;  // of all axes, stride 0 along those that it does not depend on
  AbiTensor q_{Q_.view()}, k_{K_.view()}, v_{V_.view()}, d_o_{dO_.view()}, o_{O_.view()},
      lse_{LSE_.view()}, d_q_{dQ_.view()}, d_k_{dK_.view()}, d_v_{dV_.view()},
      d_sinks_{dSinks_.view()}, of_bias_{whole_bias_}, d_bias_{dBias_.view()};
  std::vector<Space> spaces_;
};

}  // namespace attest::certify
