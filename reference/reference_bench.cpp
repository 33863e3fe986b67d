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

#include "core/freed_memory.hpp"
#include "core/numerics.hpp"
#include "core/rng.hpp"
#include "reference/bounds/bounds.hpp"
#include "reference/bounds/loss.hpp"
#include "reference/exact/attention.hpp"

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

double print(const std::string& what, const std::vector<double>& seconds) {
  const double median = seconds[seconds.size() / 2];
  std::printf("%-26s  median %.3f s, from %.3f to %.3f s over %zu runs", what.c_str(), median,
              seconds.front(), seconds.back(), seconds.size());
  return median;
}

// How many times as long as what they accompany.
void print_bounds(const std::string& what, const std::vector<double>& seconds, double reference) {
  const double median = print("bounds of " + what, seconds);
  std::printf(", %.2f times\n", median / reference);
}

struct Contract {
  const char* name;
  attest_numerics declared;
};

// Bounds cost most where P is cast: every weight is rounded by its bin.
std::vector<Contract> contracts() {
  Contract cast{", P cast", {}};
  cast.declared.p_cast = 1 + ATTEST_BF16;
  return {{"", {}}, cast};
}

double time_attention(const Problem& problem, int repetitions) {
  const Tensor Q = random_tensor("Q", problem.q_axes(), 1);
  const Tensor K = random_tensor("K", problem.k_axes(), 2);
  const Tensor V = random_tensor("V", problem.v_axes(), 3);
  const Tensor dO = random_tensor("dO", problem.o_axes(), 4);
  double checksum = 0;
  const double forward = print("forward", sorted_seconds(repetitions, [&] {
                                 const auto result = attest::reference::forward(
                                     problem, {}, Q.view(), K.view(), V.view());
                                 checksum += result.O.view().size() > 0 ? result.O(0, 0, 0, 0) : 0;
                               }));
  std::printf("\n");
  const double backward = print("backward", sorted_seconds(repetitions, [&] {
                                  const auto result = attest::reference::backward(
                                      problem, Q.view(), K.view(), V.view(), {dO.view(), nullptr});
                                  checksum +=
                                      result.dQ.view().size() > 0 ? result.dQ(0, 0, 0, 0) : 0;
                                }));
  std::printf("\n");
  const auto exact = attest::reference::forward(problem, {}, Q.view(), K.view(), V.view());
  const auto gradients =
      attest::reference::backward(problem, Q.view(), K.view(), V.view(), {dO.view(), nullptr});
  for (const Contract& contract : contracts()) {
    const attest::Numerics numerics = attest::resolve(contract.declared, problem.dtype);
    print_bounds(std::string("forward") + contract.name,
                 sorted_seconds(repetitions,
                                [&] {
                                  const auto bounds = attest::reference::forward_bounds(
                                      problem, {}, numerics, Q.view(), K.view(), V.view(), exact);
                                  checksum += bounds.O.sigma.view().size() > 0
                                                  ? bounds.O.sigma(0, 0, 0, 0)
                                                  : 0;
                                }),
                 forward);
    print_bounds(std::string("backward") + contract.name,
                 sorted_seconds(repetitions,
                                [&] {
                                  const auto bounds = attest::reference::backward_bounds(
                                      problem, {}, numerics, Q.view(), K.view(), V.view(),
                                      {dO.view(), nullptr}, {exact.O.view(), exact.LSE.view()},
                                      exact, gradients);
                                  checksum += bounds.dQ.sigma.view().size() > 0
                                                  ? bounds.dQ.sigma(0, 0, 0, 0)
                                                  : 0;
                                }),
                 backward);
  }
  return checksum;
}

double time_loss(const Problem& problem, int repetitions) {
  const std::vector<Axis> tall{{"seqlen", problem.seqlen_k, 0},
                               {"head_dim", problem.head_dim_qk, 0}};
  const std::vector<Axis> square{{"head_dim", problem.head_dim_qk, 0},
                                 {"head_dim", problem.head_dim_qk, 0}};
  const Tensor A1 = random_tensor("A1", tall, 5), A2 = random_tensor("A2", tall, 6),
               A3 = random_tensor("A3", tall, 7), E = random_tensor("E", tall, 8),
               X = random_tensor("X", square, 9), Y = random_tensor("Y", square, 10);
  const attest::reference::LossInputs loss{A1.view(), A2.view(), A3.view(),
                                           E.view(),  X.view(),  Y.view()};
  const attest::Numerics plain = attest::resolve(attest_numerics{}, problem.dtype);
  double checksum = 0;
  const double gradient = print("loss gradient", sorted_seconds(repetitions, [&] {
                                  checksum += attest::reference::loss_gradient(loss).loss;
                                }));
  std::printf("\n");
  print_bounds("loss gradient",
               sorted_seconds(
                   repetitions,
                   [&] { checksum += attest::reference::loss_bounds(plain, loss).dX.sigma(0, 0); }),
               gradient);
  return checksum;
}

int run(const std::string& text, int repetitions) {
  const Problem problem = Problem::parse(text);
  std::printf("%s\n", problem.to_string().c_str());
  const double checksum = time_attention(problem, repetitions) + time_loss(problem, repetitions);
  std::printf("checksum %.17g\n", checksum);  // so that no run can be left out
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  attest::keep_freed_memory();  // as the attest command does
  try {
    const int repetitions = argc > 2 ? std::stoi(argv[2]) : 7;
    return run(argc > 1 ? argv[1] : "hq=8,sq=1024,d=64", std::max(1, repetitions));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reference_bench: %s\n", error.what());
    return 2;
  }
}
