#include "gpu/simt/watch.hpp"

#include <utility>

namespace attest::simt {
namespace {

thread_local Watch* watch = nullptr;

}  // namespace

Watch::Watch(const Emulation& emulation) : emulation_(emulation), outer_(watch) { watch = this; }

Watch::~Watch() { watch = outer_; }

Watch* Watch::current() { return watch; }

Emulation Watch::emulation_of(const Emulation& wanted) const {
  Emulation emulation = emulation_;
  emulation.shared_bytes_limit = wanted.shared_bytes_limit;
  return emulation;
}

void Watch::add(const LaunchReport& report) {
  ++launches_;
  LaunchReport found = report;
  traffic_.push_back(std::move(found.traffic));
  found.traffic.clear();
  report_ += found;
}

}  // namespace attest::simt
