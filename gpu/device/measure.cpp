// What ci/test-gpu asks of the device, one JSON object a call.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "gpu/device/counted_run.hpp"
#include "gpu/device/error.hpp"
#include "gpu/device/events.cuh"
#include "gpu/device/probe.hpp"
#include "gpu/device/rates.hpp"
#include "gpu/device/require.cuh"
#include "gpu/device/testing/device_call.hpp"
#include "gpu/testing/call.hpp"

namespace attest::gpu::cuda {
namespace {

using nlohmann::json;

constexpr const char* kUsage =
    "usage: attest_gpu_measure device          its name, or why there is none\n"
    "       attest_gpu_measure rates           copies, float32 and matrix products, per second\n"
    "       attest_gpu_measure run PROBLEM     forward and backward once, for a profiler\n"
    "       attest_gpu_measure count PROBLEM   bytes counted, forward and backward together\n"
    "       attest_gpu_measure time PROBLEM    seconds and operations of each\n";

json device_json() {
  const Device& found = device();
  json object{{"driver", found.driver_version}, {"runtime", found.runtime_version}};
  if (found.present()) {
    object["device"] = found.name;
  } else {
    object["absent_because"] = found.absent_because;
  }
  return object;
}

json rates() {
  return {{"copy_bytes_per_second", copy_bytes_per_second()},
          {"float_operations_per_second", float_operations_per_second()},
          {"matrix_operations_per_second", matrix_operations_per_second()}};
}

json run(const std::string& problem) {
  DeviceCall call(problem);
  call.forward();
  call.backward();
  require(cudaDeviceSynchronize(), problem);
  return {{"problem", problem}};
}

json count(const std::string& problem) {
  gpu::testing::Call call(problem);
  simt::GlobalTraffic bytes = counted("gpu/flash2", call.forward_arguments());
  bytes += counted("gpu/flash2", call.backward_arguments());
  return {{"problem", problem},
          {"read_bytes", bytes.read_bytes},
          {"written_bytes", bytes.written_bytes}};
}

json time(const std::string& problem) {
  constexpr int kRepetitions = 20;
  DeviceCall call(problem);
  return {{"problem", problem},
          {"forward_seconds", least_seconds(kRepetitions, nullptr, [&] { call.forward(); })},
          {"backward_seconds", least_seconds(kRepetitions, nullptr, [&] { call.backward(); })},
          {"forward_operations", call.forward_operations()},
          {"backward_operations", call.backward_operations()}};
}

int answer(const std::vector<std::string>& words) {
  constexpr int kUsageStatus = 2;
  const std::string verb = words.empty() ? "" : words[0];
  json object;
  if (words.size() == 1 && verb == "device") {
    object = device_json();
  } else if (words.size() == 1 && verb == "rates") {
    object = rates();
  } else if (words.size() == 2 && verb == "run") {
    object = run(words[1]);
  } else if (words.size() == 2 && verb == "count") {
    object = count(words[1]);
  } else if (words.size() == 2 && verb == "time") {
    object = time(words[1]);
  } else {
    std::cerr << kUsage;
    return kUsageStatus;
  }
  std::cout << object.dump() << "\n";
  return 0;
}

}  // namespace
}  // namespace attest::gpu::cuda

int main(int argc, char** argv) {
  try {
    return attest::gpu::cuda::answer({argv + 1, argv + argc});
  } catch (const attest::gpu::cuda::DeviceError& error) {
    std::cerr << "attest_gpu_measure: " << error.what() << "\n";
    return 1;
  } catch (const attest::InvalidProblem& error) {
    std::cerr << "attest_gpu_measure: " << error.what() << "\n";
    return 2;
  }
}
