#include "certify/bench/timing/kernel_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "certify/campaign/host.hpp"

namespace attest::certify {
namespace {

constexpr double kGiga = 1e-9;

nlohmann::json quartiles_json(const Quartiles& q) {
  return {{"low", q.low}, {"median", q.median}, {"high", q.high}};
}

// Processors that the threads can have.
std::int32_t processors(const BenchSetting& setting) {
  const auto all = static_cast<std::int32_t>(std::max(1u, std::thread::hardware_concurrency()));
  return std::min(setting.threads, all);
}

}  // namespace

const char* word_of(Direction direction) {
  return direction == Direction::forward ? "forward" : "backward";
}

std::vector<KernelTime> kernel_times(const Measurement& measurement, const BenchSetting& setting,
                                     Direction direction) {
  const double operations = useful_flops(setting.problem, direction);
  const double peak = quartiles(measurement.peak_flops).median * processors(setting);
  std::vector<KernelTime> rows;
  for (const KernelTiming& timing : measurement.timings) {
    KernelTime row{timing.kernel, direction, quartiles(timing.seconds),
                   paired_ratios(timing.seconds, measurement.timings.front().seconds)};
    row.flops = operations / row.seconds.median;
    row.share_of_peak = row.flops / peak;
    rows.push_back(row);
  }
  return rows;
}

bool multiplies_in_float32(const attest_description& description, const Problem& problem) {
  return (problem.dtype == DType::f32 || problem.dtype == DType::f64) &&
         description.numerics.operand_roundoff == 0;
}

std::string too_fast(const KernelTime& row, const BenchSetting& setting, double ceiling) {
  const double most = ceiling * processors(setting);
  if (row.flops <= most) return "";
  return fmt::format(
      "faster than this machine can multiply: {:.1f} Gflop/s needed in the time measured, {:.1f} "
      "that {} can do in float32, fused; work is left out, done before or after the "
      "call or by more threads than --threads, or operands are rounded (declare operand_roundoff)",
      kGiga * row.flops, kGiga * most,
      setting.threads == 1 ? "one thread" : fmt::format("{} threads", setting.threads));
}

nlohmann::json bench_json(const BenchSetting& setting, const std::vector<KernelTime>& rows) {
  nlohmann::json times = nlohmann::json::array();
  for (const KernelTime& row : rows) {
    times.push_back({{"kernel", row.kernel},
                     {"direction", word_of(row.direction)},
                     {"seconds", quartiles_json(row.seconds)},
                     {"against_first", quartiles_json(row.against_first)},
                     {"useful_flops", row.flops},
                     {"share_of_peak", row.share_of_peak}});
  }
  return {{"schema", "attest-bench-1"}, {"build", build_json()},
          {"host", host_json()},        {"problem", setting.problem.to_string()},
          {"threads", setting.threads}, {"rounds", setting.rounds},
          {"seed", setting.seed},       {"times", times},
          {"refused", nullptr},         {"exit_code", 0}};
}

}  // namespace attest::certify
