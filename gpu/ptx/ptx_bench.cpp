// Milliseconds of processor time, and warp instructions a second, of Triton's flash attention for
// sm_80 on one thread of the host: one head of 1024 queries and keys, d = 64, bf16, with checks and
// without. The result is verified before it is timed.
//   ptx_bench [REPETITIONS]
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/dtype/dtype.hpp"
#include "core/rng.hpp"
#include "gpu/ptx/execution/executor.hpp"
#include "gpu/ptx/testing/texts.hpp"
#include "gpu/ptx/text/parser.hpp"

namespace {

namespace ptx = attest::ptx;
namespace simt = attest::simt;

constexpr std::size_t kRows = 1024, kDepth = 64;
constexpr unsigned kTile = 64, kThreads = 128;
constexpr std::int64_t kSharedBytes = 40960;  // as Triton launches it
constexpr float kScale = 0.125F;

std::vector<std::uint16_t> random_rows(std::uint64_t seed) {
  std::vector<std::uint16_t> values(kRows * kDepth);
  attest::Rng rng(seed);
  for (std::uint16_t& value : values) {
    value = attest::bf16_from_float(static_cast<float>(rng.normal()));
  }
  return values;
}

double at(const std::vector<std::uint16_t>& rows, std::size_t row, std::size_t d) {
  return static_cast<double>(attest::float_from_bf16(rows[row * kDepth + d]));
}

class Attention {
 public:
  simt::LaunchReport run(simt::SharedChecks checks) {
    simt::GlobalMemory memory;
    ptx::Parameters parameters(program_);
    // Nobody says which tensors are inputs, as with emulated_gpu.
    const auto add = [&](const char* name, auto& values) {
      memory.add(name, values.data(), static_cast<std::int64_t>(values.size()));
      parameters.add(values.data());
    };
    add("q", q_);
    add("k", k_);
    add("v", v_);
    add("o", o_);
    add("lse", lse_);
    parameters.add(kScale);
    const auto depth = static_cast<std::int32_t>(kDepth);
    parameters.add(static_cast<std::int32_t>(kRows)).add(depth).add(depth);
    parameters.add(std::int32_t{0}).add(std::uint64_t{0}).add(std::uint64_t{0});
    simt::Emulation emulation;
    emulation.shared_checks = checks;
    emulation.threads = 1;
    return ptx::execute(program_, {{kRows / kTile, 1, 1}, {kThreads, 1, 1}, kSharedBytes},
                        emulation, memory, parameters);
  }

  // The largest error of O in units of what bf16's P and O may give.
  double worst_error() const {
    double worst = 0.0;
    std::vector<double> weights(kRows);
    for (std::size_t i = 0; i < kRows; ++i) {
      double sum = 0.0;
      for (std::size_t j = 0; j < kRows; ++j) {
        double score = 0.0;
        for (std::size_t d = 0; d < kDepth; ++d) score += at(q_, i, d) * at(k_, j, d);
        weights[j] = std::exp(score * static_cast<double>(kScale));
        sum += weights[j];
      }
      for (std::size_t d = 0; d < kDepth; ++d) {
        double exact = 0.0, magnitude = 0.0;
        for (std::size_t j = 0; j < kRows; ++j) {
          exact += weights[j] / sum * at(v_, j, d);
          magnitude += weights[j] / sum * std::fabs(at(v_, j, d));
        }
        const double unit =
            2.0 * attest::unit_roundoff(attest::DType::bf16) * (magnitude + std::fabs(exact));
        worst = std::fmax(worst, std::fabs(at(o_, i, d) - exact) / unit);
      }
    }
    return worst;
  }

 private:
  ptx::Program program_ = ptx::check(ptx::parse(ptx::testing::text("flash_triton")));
  std::vector<std::uint16_t> q_ = random_rows(1), k_ = random_rows(2), v_ = random_rows(3),
                             o_ = random_rows(4);
  std::vector<float> lse_ = std::vector<float>(kRows, NAN);
};

void verify(Attention& attention) {
  const simt::LaunchReport report = attention.run(simt::SharedChecks::on);
  if (!report.clean()) throw std::runtime_error("found: " + report.to_string());
  const double worst = attention.worst_error();
  if (!(worst <= 1.0)) throw std::runtime_error("wrong by " + std::to_string(worst) + " units");
}

double milliseconds(Attention& attention, simt::SharedChecks checks, std::uint64_t& instructions) {
  const std::clock_t start = std::clock();
  instructions = attention.run(checks).instructions;
  return 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

void print(const char* what, std::vector<double> times, std::uint64_t instructions) {
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  std::printf(
      "%-15s median %.1f ms, from %.1f to %.1f ms, %.1f million warp instructions a second\n", what,
      median, times.front(), times.back(), static_cast<double>(instructions) / 1e3 / median);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int repetitions = argc > 1 ? std::stoi(argv[1]) : 15;
    Attention attention;
    verify(attention);
    std::vector<double> with, without;
    std::uint64_t instructions = 0;
    for (int k = 0; k < repetitions; ++k) {
      with.push_back(milliseconds(attention, simt::SharedChecks::on, instructions));
      without.push_back(milliseconds(attention, simt::SharedChecks::off, instructions));
    }
    print("with checks", with, instructions);
    print("without checks", without, instructions);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ptx_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
