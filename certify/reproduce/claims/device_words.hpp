#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "certify/reproduce/experiment.hpp"

/// Reads what devices measured from the record in gpu/results: bytes between L1 and L2, and times.
namespace attest::certify {

/// Three of the five numbers that tell how times spread.
struct DeviceTime {
  double low = 0, median = 0, high = 0;  // seconds; quartiles beside the median
};

/// A kernel with tiles of one size, on one problem.
struct DeviceRun {
  std::string direction, family, kernel, problem;
  std::int64_t fast_bytes = 0;  // of a block: shared memory and registers
  std::int64_t words = 0;       // counted, of four bytes
  double moved_bytes = 0;       // by the profiler, between L1 and L2; 0: not profiled
  DeviceTime time;
};

/// Block-sparse attention against dense attention, one density.
struct DeviceDensity {
  double density = 0, forward_speedup = 0, backward_speedup = 0;
};

/// The last run on one device.
struct DeviceRecord {
  std::string device, date;
  std::size_t calls = 0,
              equal_calls = 0;  // whose bytes were counted there, and are the emulation's
  std::vector<DeviceRun> runs;
  std::vector<DeviceDensity> densities;
};

/// Reads JSON lines of gpu/results; each record of kind "run" begins a device or replaces an
/// earlier run on it. Throws InvalidProblem with the number of a line that is none.
/// [certify/reproduce/claims/device_words_test]
std::vector<DeviceRecord> parse_device_records(const std::string& lines);

/// The lines of all files of gpu/results, as the build was configured.
std::string recorded_on_devices();

/// Holds what devices measured against the papers, each device by itself. A claim is about fast
/// memory below d^2 where a schedule with no more fast memory than another one moves fewer bytes.
/// [certify/reproduce/claims/device_words_test]
Findings device_words(const std::vector<DeviceRecord>& records);

}  // namespace attest::certify
