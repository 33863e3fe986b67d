#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "certify/bench/timing/statistics.hpp"
#include "certify/bench/timing/timing.hpp"

/// Report of `attest bench` on a measurement.
namespace attest::certify {

/// How a measurement was made.
struct BenchSetting {
  Problem problem;
  std::int32_t threads = 1;
  int rounds = 0;
  std::uint64_t seed = 0;
};

/// One kernel in one direction.
struct KernelTime {
  std::string kernel;
  Direction direction = Direction::forward;
  Quartiles seconds;
  Quartiles against_first;   // its seconds over those of the first kernel, paired by round
  double flops = 0;          // useful operations per second, of the median
  double share_of_peak = 0;  // of those that all threads could do, median of one in every round
};

/// A row for each kernel, in the order in which they were passed.
/// Requires: a Measurement of `measure`, with at least one round.
/// [certify/bench/timing/kernel_times_test "rows of a measurement"]
std::vector<KernelTime> kernel_times(const Measurement& measurement, const BenchSetting& setting,
                                     Direction direction);

/// Tells whether useful operations of the kernel on this problem are multiplications in float32 or
/// wider: tensors of no narrower type, and no operand rounded to one.
bool multiplies_in_float32(const attest_description& description, const Problem& problem);

/// "" or why times are not those of the work: more useful operations per second than all threads
/// could do at `ceiling` each.  [certify/bench/timing/kernel_times_test "faster than"]
std::string too_fast(const KernelTime& row, const BenchSetting& setting, double ceiling);

/// By certify/schemas/bench.schema.json.  [certify/bench/timing/kernel_times_test "bench JSON has
/// every"]
nlohmann::json bench_json(const BenchSetting& setting, const std::vector<KernelTime>& rows);

/// "forward" or "backward".
const char* word_of(Direction direction);

}  // namespace attest::certify
