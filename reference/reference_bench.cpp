// Seconds of the float64 reference, forward and backward, and of the bounds that accompany them, at
// one problem: median, fastest, slowest. The loss gradient is timed at one head of the same size.
//   reference_bench [PROBLEM] [REPETITIONS]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "core/numerics.hpp"
#include "core/rng.hpp"
#include "reference/attention.hpp"
#include "reference/bounds.hpp"
#include "reference/bounds_loss.hpp"

namespace {

using attest::Axis;
using attest::Problem;
using attest::Tensor;

Tensor random_tensor(const char* name, std::vector<Axis> axes, std::uint64_t seed) {
  Tensor tensor(name, attest::DType::f64, std::move(axes));
  attest::Rng rng(seed);
  double* values = tensor.doubles();
  for (std::int64_t e = 0; e < tensor.view().size(); ++e) values[e] = rng.normal();
  return tensor;
}

template <typename Work>
std::vector<double> sorted_seconds(int repetitions, const Work& work) {
  std::vector<double> seconds;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    seconds.push_back(elapsed.count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

void print(const char* what, const std::vector<double>& seconds) {
  std::printf("%-18s  median %.3f s, from %.3f to %.3f s over %zu runs\n", what,
              seconds[seconds.size() / 2], seconds.front(), seconds.back(), seconds.size());
}

int run(const std::string& text, int repetitions) {
  const Problem problem = Problem::parse(text);
  const Tensor Q = random_tensor("Q", problem.q_axes(), 1);
  const Tensor K = random_tensor("K", problem.k_axes(), 2);
  const Tensor V = random_tensor("V", problem.v_axes(), 3);
  const Tensor dO = random_tensor("dO", problem.o_axes(), 4);
  std::printf("%s\n", problem.to_string().c_str());
  double checksum = 0;  // so that no run can be left out
  print("forward", sorted_seconds(repetitions, [&] {
          const auto result = attest::reference::forward(problem, {}, Q.view(), K.view(), V.view());
          checksum += result.O.view().size() > 0 ? result.O(0, 0, 0, 0) : 0;
        }));
  print("backward", sorted_seconds(repetitions, [&] {
          const auto result = attest::reference::backward(problem, Q.view(), K.view(), V.view(),
                                                          {dO.view(), nullptr});
          checksum += result.dQ.view().size() > 0 ? result.dQ(0, 0, 0, 0) : 0;
        }));
  const auto exact = attest::reference::forward(problem, {}, Q.view(), K.view(), V.view());
  const auto gradients =
      attest::reference::backward(problem, Q.view(), K.view(), V.view(), {dO.view(), nullptr});
  const attest::Numerics plain = attest::resolve(attest_numerics{}, problem.dtype);
  print("bounds of forward", sorted_seconds(repetitions, [&] {
          const auto bounds = attest::reference::forward_bounds(problem, {}, plain, Q.view(),
                                                                K.view(), V.view(), exact);
          checksum += bounds.O.sigma.view().size() > 0 ? bounds.O.sigma(0, 0, 0, 0) : 0;
        }));
  print("bounds of backward", sorted_seconds(repetitions, [&] {
          const auto bounds = attest::reference::backward_bounds(
              problem, {}, plain, Q.view(), K.view(), V.view(), {dO.view(), nullptr},
              {exact.O.view(), exact.LSE.view()}, exact, gradients);
          checksum += bounds.dQ.sigma.view().size() > 0 ? bounds.dQ.sigma(0, 0, 0, 0) : 0;
        }));
  const std::vector<Axis> tall{{"seqlen", problem.seqlen_k, 0},
                               {"head_dim", problem.head_dim_qk, 0}};
  const std::vector<Axis> square{{"head_dim", problem.head_dim_qk, 0},
                                 {"head_dim", problem.head_dim_qk, 0}};
  const Tensor A1 = random_tensor("A1", tall, 5), A2 = random_tensor("A2", tall, 6),
               A3 = random_tensor("A3", tall, 7), E = random_tensor("E", tall, 8),
               X = random_tensor("X", square, 9), Y = random_tensor("Y", square, 10);
  const attest::reference::LossInputs loss{A1.view(), A2.view(), A3.view(),
                                           E.view(),  X.view(),  Y.view()};
  print("loss gradient", sorted_seconds(repetitions, [&] {
          checksum += attest::reference::loss_gradient(loss).loss;
        }));
  print("bounds of it", sorted_seconds(repetitions, [&] {
          checksum += attest::reference::loss_bounds(plain, loss).dX.sigma(0, 0);
        }));
  std::printf("checksum %.17g\n", checksum);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int repetitions = argc > 2 ? std::stoi(argv[2]) : 7;
    return run(argc > 1 ? argv[1] : "hq=8,sq=1024,d=64", std::max(1, repetitions));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reference_bench: %s\n", error.what());
    return 2;
  }
}
