#include "certify/bench/timing.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <new>
#include <numeric>

#include "certify/bench/arithmetic_peak.hpp"
#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/tensor.hpp"
#include "proptest/truth.hpp"
#include "proptest/values.hpp"

namespace attest::certify {
namespace {

using proptest::Direction;

// Memory of one problem: inputs, and the outputs every candidate writes in turn.
class Operands {
 public:
  Operands(const Problem& problem, std::int32_t threads, std::uint64_t seed,
           std::uint32_t features = ATTEST_BOOLEAN_MASK)
      : form_(problem, threads, features),
        Q_(random("Q", problem.dtype, problem.q_axes(), mix(seed, 1))),
        K_(random("K", problem.dtype, problem.k_axes(), mix(seed, 2))),
        V_(random("V", problem.dtype, problem.v_axes(), mix(seed, 3))),
        dO_(random("dO", problem.dtype, problem.o_axes(), mix(seed, 4))),
        O_("O", problem.dtype, problem.o_axes()),
        LSE_("LSE", problem.dtype == DType::f64 ? DType::f64 : DType::f32, problem.lse_axes()),
        dQ_("dQ", problem.dtype, problem.q_axes()),
        dK_("dK", problem.dtype, problem.k_axes()),
        dV_("dV", problem.dtype, problem.v_axes()) {}

  attest_status call(const attest_kernel& kernel, Direction direction) {
    const Space& space = space_for(kernel, direction);
    if (direction == Direction::forward) {
      const attest_forward_args args{sizeof args, form_.get(), q_.get(),   k_.get(),
                                     v_.get(),    o_.get(),    lse_.get(), space.data.get(),
                                     space.bytes, nullptr};
      return kernel.forward(kernel.self, &args);
    }
    const attest_backward_args args{sizeof args,      form_.get(), q_.get(),   k_.get(),
                                    v_.get(),         o_.get(),    lse_.get(), d_o_.get(),
                                    nullptr,          d_q_.get(),  d_k_.get(), d_v_.get(),
                                    space.data.get(), space.bytes, nullptr};
    return kernel.backward(kernel.self, &args);
  }

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

  static Tensor random(const char* name, DType dtype, const std::vector<Axis>& axes,
                       std::uint64_t seed) {
    Tensor tensor(name, dtype, axes);
    Rng rng(seed);
    const TensorView& view = tensor.view();
    for (std::int64_t b = 0; b < view.extent(0); ++b) {
      for (std::int64_t i = 0; i < view.extent(1); ++i) {
        for (std::int64_t h = 0; h < view.extent(2); ++h) {
          for (std::int64_t c = 0; c < view.extent(3); ++c) view.set(rng.normal(), b, i, h, c);
        }
      }
    }
    return tensor;
  }

  // Kept between calls, so that no candidate pays for fresh pages while the clock runs.
  const Space& space_for(const attest_kernel& kernel, Direction direction) {
    const std::uint32_t flag = direction == Direction::forward ? ATTEST_FORWARD : ATTEST_BACKWARD;
    for (Space& space : spaces_) {
      if (space.owner == &kernel && space.direction == flag) return space;
    }
    const std::size_t bytes = kernel.workspace_bytes == nullptr
                                  ? 0
                                  : kernel.workspace_bytes(kernel.self, form_.get(), flag);
    Space& space = spaces_.emplace_back(Space{&kernel, flag, bytes, nullptr});
    if (bytes > 0) {
      space.data.reset(static_cast<std::byte*>(::operator new(bytes, kCacheLine)));
      std::fill_n(space.data.get(), bytes, std::byte{});
    }
    return space;
  }

  AbiProblem form_;
  Tensor Q_, K_, V_, dO_, O_, LSE_, dQ_, dK_, dV_;
  AbiTensor q_{Q_.view()}, k_{K_.view()}, v_{V_.view()}, d_o_{dO_.view()}, o_{O_.view()},
      lse_{LSE_.view()}, d_q_{dQ_.view()}, d_k_{dK_.view()}, d_v_{dV_.view()};
  std::vector<Space> spaces_;
};

void require_done(attest_status status, const attest_kernel& kernel, const Problem& problem) {
  if (status == ATTEST_OK) return;
  throw InvalidProblem(std::string(kernel.description.name) + ": returned status " +
                       std::to_string(static_cast<int>(status)) + " for " + problem.to_string() +
                       "; leave it out of the measurement");
}

void shuffle(std::vector<std::size_t>& order, Rng& rng) {
  for (std::size_t last = order.size(); last > 1; --last) {
    const auto other = rng.between(0, static_cast<std::int64_t>(last) - 1);
    std::swap(order[last - 1], order[static_cast<std::size_t>(other)]);
  }
}

}  // namespace

void verify(const std::vector<const attest_kernel*>& kernels, const Problem& problem,
            std::uint64_t seed) {
  const proptest::Case c{problem, proptest::Values::normal, seed, 1};
  const proptest::InputValues values = proptest::make_values(problem, c.values, seed);
  for (const attest_kernel* kernel : kernels) {
    const bool both = (kernel->description.directions & ATTEST_BACKWARD) != 0;
    const Direction direction = both ? Direction::backward : Direction::forward;
    const proptest::KernelRun run = proptest::run(*kernel, problem, values, direction, c);
    require_done(run.status, *kernel, problem);
    const auto refuse = [&](const std::string& what) {
      throw InvalidProblem(std::string(kernel->description.name) + ": not timed, because on " +
                           problem.to_string() + " it " + what + "; fix it or leave it out");
    };
    if (!run.misconduct.empty()) refuse("misbehaves: " + run.misconduct);
    const proptest::Truth truth(kernel->description, problem, values, direction, seed);
    const proptest::Judgement judgement = proptest::gravest(truth.judge(run));
    if (judgement.verdict != Verdict::passed) {
      refuse("is " + std::string(name(judgement.verdict)) + ": " + judgement.reason);
    }
  }
}

namespace {

// call(k) for kernel k, once a round.
Measurement measure_each(const std::vector<const attest_kernel*>& kernels, int rounds,
                         std::uint64_t seed, const std::function<void(std::size_t)>& call) {
  Measurement result;
  std::vector<std::size_t> order(kernels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (const attest_kernel* kernel : kernels) {
    result.timings.push_back({kernel->description.name, {}});
  }
  Rng rng(seed, 1);
  for (int round = -1; round < rounds; ++round) {  // round -1 warms up
    shuffle(order, rng);
    if (round >= 0) result.peak_flops.push_back(arithmetic_peak_flops());
    for (const std::size_t candidate : order) {
      const auto start = std::chrono::steady_clock::now();
      call(candidate);
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      if (round >= 0) result.timings[candidate].seconds.push_back(elapsed.count());
    }
  }
  return result;
}

}  // namespace

Measurement measure_calls(const std::vector<const attest_kernel*>& kernels, const Problem& problem,
                          int rounds, std::uint64_t seed,
                          const std::function<attest_status(const attest_kernel&)>& call) {
  return measure_each(kernels, rounds, seed, [&](std::size_t k) {
    require_done(call(*kernels[k]), *kernels[k], problem);
  });
}

Measurement measure(const std::vector<const attest_kernel*>& kernels, const Problem& problem,
                    Direction direction, std::int32_t threads, int rounds, std::uint64_t seed) {
  if (kernels.empty()) throw InvalidProblem("kernels: none given; pass at least one to time");
  Operands operands(problem, threads, seed);
  require_done(operands.call(*kernels.front(), Direction::forward), *kernels.front(), problem);
  return measure_calls(kernels, problem, rounds, seed, [&](const attest_kernel& kernel) {
    return operands.call(kernel, direction);
  });
}

Measurement measure(const std::vector<Candidate>& candidates, Direction direction,
                    std::int32_t threads, int rounds, std::uint64_t seed) {
  if (candidates.empty()) throw InvalidProblem("kernels: none given; pass at least one to time");
  std::vector<const attest_kernel*> kernels;
  std::deque<Operands> operands;  // they do not move
  const auto call = [&](std::size_t k, Direction one) {
    require_done(operands[k].call(*kernels[k], one), *kernels[k], candidates[k].problem);
  };
  for (const Candidate& candidate : candidates) {
    kernels.push_back(candidate.kernel);
    operands.emplace_back(candidate.problem, threads, seed, candidate.kernel->description.features);
    call(kernels.size() - 1, Direction::forward);
  }
  return measure_each(kernels, rounds, seed, [&](std::size_t k) { call(k, direction); });
}

double useful_flops(const Problem& problem, Direction direction) {
  const double pairs =
      static_cast<double>(problem.visible_pairs()) * static_cast<double>(problem.num_heads_q);
  const auto d = static_cast<double>(problem.head_dim_qk),
             dv = static_cast<double>(problem.head_dim_v);
  return pairs * (direction == Direction::forward ? 2 * (d + dv) : 6 * d + 4 * dv);
}

}  // namespace attest::certify
