#include "certify/bench/timing/heartbeat.hpp"

#include "certify/bench/timing/two_clocks.hpp"

namespace attest::certify {

void Heartbeat::begins(std::size_t of_kernel, int in_round) {
  kernel = static_cast<std::int32_t>(of_kernel);
  round = in_round;
  began = system_nanoseconds();
}

}  // namespace attest::certify
