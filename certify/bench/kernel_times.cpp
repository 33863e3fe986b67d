#include "certify/bench/kernel_times.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "certify/host.hpp"

namespace attest::certify {
namespace {

nlohmann::json quartiles_json(const Quartiles& q) {
  return {{"low", q.low}, {"median", q.median}, {"high", q.high}};
}

}  // namespace

const char* word_of(proptest::Direction direction) {
  return direction == proptest::Direction::forward ? "forward" : "backward";
}

std::vector<KernelTime> kernel_times(const Measurement& measurement, const BenchSetting& setting,
                                     proptest::Direction direction) {
  const double operations = useful_flops(setting.problem, direction);
  const auto processors =
      static_cast<std::int32_t>(std::max(1u, std::thread::hardware_concurrency()));
  const double peak =
      quartiles(measurement.peak_flops).median * std::min(setting.threads, processors);
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
