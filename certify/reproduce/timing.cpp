#include "certify/reproduce/timing.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

namespace attest::certify {

Timing time_runs(const io::Schedule& schedule, const ForwardCall& call, int runs) {
  schedule.run(call.args());
  std::vector<double> milliseconds;
  for (int run = 0; run < runs; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    schedule.run(call.args());
    milliseconds.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  return {milliseconds[milliseconds.size() / 2], milliseconds.front(), milliseconds.back()};
}

bool clearly_faster(const Timing& one, const Timing& other) { return one.most < other.least; }

}  // namespace attest::certify
