#pragma once

#include "gpu/simt/launch.hpp"

namespace attest::simt {

/// While one lives, kernels that its thread launches are emulated as it says, whatever order,
/// checks and number of threads the launch asks for, and it keeps what they report. The limit of
/// shared memory stays the launch's own. Watches of a thread end in the opposite order they began.
/// [gpu/simt/watch_test]
class Watch {
 public:
  explicit Watch(const Emulation& emulation);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// That of this thread, or null.
  static Watch* current();

  /// Returns the emulation of a launch that asks for `wanted`.
  Emulation emulation_of(const Emulation& wanted) const;
  void add(const LaunchReport& report);

  std::int64_t launches() const { return launches_; }
  /// Returns the report of all launches, without their traffic: their tensors differ.
  const LaunchReport& report() const { return report_; }
  /// Launch by launch, each by the tensors that it had.
  const std::vector<std::vector<GlobalTraffic>>& traffic() const { return traffic_; }

 private:
  Emulation emulation_;
  Watch* outer_;
  std::int64_t launches_ = 0;
  LaunchReport report_;
  std::vector<std::vector<GlobalTraffic>> traffic_;
};

}  // namespace attest::simt
