#include "certify/bench/timing/two_clocks.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>

namespace attest::certify {

std::int64_t steady_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::int64_t system_nanoseconds() {
  constexpr std::int64_t kNano = 1'000'000'000;
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC_RAW, &now);
  return now.tv_sec * kNano + now.tv_nsec;
}

void TwoClocks::start() {
  before_ = first_();
  second_begin_ = second_();
  begin_ = first_();
}

double TwoClocks::stop() {
  const std::int64_t end = first_();
  const std::int64_t second_end = second_();
  const std::int64_t after = first_();
  least_ += end - begin_;
  most_ += after - before_;
  by_second_ += second_end - second_begin_;
  constexpr double kNano = 1e-9;
  return kNano * static_cast<double>(end - begin_);
}

std::string TwoClocks::disagreement() const {
  constexpr double kMostApart = 0.01, kMilli = 1e-6;
  const auto least = static_cast<double>(least_), most = static_cast<double>(most_),
             second = static_cast<double>(by_second_);
  if (second * (1 + kMostApart) >= least && second * (1 - kMostApart) <= most) return "";
  return fmt::format("its calls took {:.3f} ms by the clock that measures and {:.3f} ms by another",
                     kMilli * least, kMilli * second);
}

}  // namespace attest::certify
