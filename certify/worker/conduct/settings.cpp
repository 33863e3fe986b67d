#include "certify/worker/conduct/settings.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

namespace attest::certify::worker {
namespace {

struct NamedLimit {
  __rlimit_resource resource;
  const char* name;
};

constexpr NamedLimit kNamedLimits[] = {
    {RLIMIT_AS, "RLIMIT_AS"},           {RLIMIT_CORE, "RLIMIT_CORE"},
    {RLIMIT_CPU, "RLIMIT_CPU"},         {RLIMIT_DATA, "RLIMIT_DATA"},
    {RLIMIT_FSIZE, "RLIMIT_FSIZE"},     {RLIMIT_LOCKS, "RLIMIT_LOCKS"},
    {RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK"}, {RLIMIT_MSGQUEUE, "RLIMIT_MSGQUEUE"},
    {RLIMIT_NICE, "RLIMIT_NICE"},       {RLIMIT_NOFILE, "RLIMIT_NOFILE"},
    {RLIMIT_NPROC, "RLIMIT_NPROC"},     {RLIMIT_RSS, "RLIMIT_RSS"},
    {RLIMIT_RTPRIO, "RLIMIT_RTPRIO"},   {RLIMIT_RTTIME, "RLIMIT_RTTIME"},
    {RLIMIT_STACK, "RLIMIT_STACK"},     {RLIMIT_SIGPENDING, "RLIMIT_SIGPENDING"}};

constexpr __itimer_which kTimerClocks[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};

bool openmp_binds() {
  static const bool binds = [] {
    for (const char* name : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"}) {
      if (std::getenv(name) != nullptr) return true;
    }
    return false;
  }();
  return binds;
}

std::vector<unsigned char> allowed_processors() {
  constexpr std::size_t kMostProcessors = 8192;
  cpu_set_t set[kMostProcessors / 8 / sizeof(cpu_set_t)];
  if (openmp_binds() || sched_getaffinity(0, sizeof set, set) != 0) return {};
  const auto* const bytes = reinterpret_cast<const unsigned char*>(set);
  return {bytes, bytes + sizeof set};
}

// The mask can only be read by setting it; meanwhile nothing becomes readable for others.
mode_t file_mode_mask() {
  constexpr mode_t kStrict = 0077;
  const mode_t mask = umask(kStrict);
  umask(mask);
  return mask;
}

std::string limit_text(std::uint64_t value) {
  return value == RLIM_INFINITY ? "unlimited" : std::to_string(value);
}

std::string octal(mode_t mask) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%03o", mask);
  return digits;
}

}  // namespace

Settings Settings::now() {
  static_assert(std::size(kNamedLimits) == kLimits && std::size(kTimerClocks) == kTimers);
  static_assert(kMostSignals == NSIG);
  Settings settings;
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  for (int signal = 1; signal < NSIG; ++signal) {
    settings.blocked_[static_cast<std::size_t>(signal)] = sigismember(&blocked, signal) == 1;
  }
  for (std::size_t k = 0; k < kTimers; ++k) {
    itimerval timer{};
    getitimer(kTimerClocks[k], &timer);
    settings.armed_[k] = timerisset(&timer.it_value) || timerisset(&timer.it_interval);
  }
  for (std::size_t k = 0; k < kLimits; ++k) {
    rlimit limit{};
    getrlimit(kNamedLimits[k].resource, &limit);
    settings.limits_[k] = {limit.rlim_cur, limit.rlim_max};
  }
  settings.file_mask_ = file_mode_mask();
  settings.nice_ = getpriority(PRIO_PROCESS, 0);
  settings.policy_ = sched_getscheduler(0);
  settings.processors_ = allowed_processors();
  return settings;
}

std::optional<Fault> Settings::change(const Settings& later) const {
  for (std::size_t signal = 1; signal < kMostSignals; ++signal) {
    if (blocked_[signal] == later.blocked_[signal]) continue;
    return Fault{FaultKind::signal_mask, "signal " + std::to_string(signal) + " (" +
                                             strsignal(static_cast<int>(signal)) + ") was " +
                                             (blocked_[signal] ? "un" : "") + "blocked"};
  }
  if (armed_ != later.armed_) {
    return Fault{FaultKind::timer, "a timer (alarm, setitimer) was left running or stopped"};
  }
  for (std::size_t k = 0; k < kLimits; ++k) {
    const Limit &before = limits_[k], &after = later.limits_[k];
    if (before == after) continue;
    const bool soft = before.soft != after.soft;
    return Fault{FaultKind::resource_limit,
                 std::string(kNamedLimits[k].name) + (soft ? " " : " (hard) ") +
                     limit_text(soft ? before.soft : before.hard) + " became " +
                     limit_text(soft ? after.soft : after.hard)};
  }
  if (file_mask_ != later.file_mask_) {
    return Fault{FaultKind::umask,
                 "the mask " + octal(file_mask_) + " became " + octal(later.file_mask_)};
  }
  if (nice_ != later.nice_) {
    return Fault{FaultKind::scheduling, "the nice value " + std::to_string(nice_) + " became " +
                                            std::to_string(later.nice_)};
  }
  if (policy_ != later.policy_) {
    return Fault{FaultKind::scheduling, "the scheduling policy " + std::to_string(policy_) +
                                            " became " + std::to_string(later.policy_)};
  }
  if (processors_ != later.processors_) {
    return Fault{FaultKind::scheduling, "the calling thread was bound to other processors"};
  }
  return std::nullopt;
}

}  // namespace attest::certify::worker
