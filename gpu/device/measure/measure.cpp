// Answers what ci/test-gpu asks of the device, one JSON object a call.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "gpu/device/error.hpp"
#include "gpu/device/kernels/require.cuh"
#include "gpu/device/measure/events.cuh"
#include "gpu/device/measure/kernel_counts.hpp"
#include "gpu/device/measure/rates.hpp"
#include "gpu/device/probe.hpp"
#include "gpu/device/testing/device_call.hpp"

namespace attest::gpu::cuda {
namespace {

using nlohmann::json;

constexpr const char* kUsage =
    "usage: attest_gpu_measure device                its name, or why there is none\n"
    "       attest_gpu_measure kernels               those that have a device side\n"
    "       attest_gpu_measure rates                 copies, float32 and matrix products, per "
    "second\n"
    "       attest_gpu_measure run KERNEL PROBLEM    all its directions once, for a profiler\n"
    "       attest_gpu_measure count KERNEL PROBLEM  bytes counted, all its directions together\n"
    "       attest_gpu_measure time KERNEL PROBLEM   seconds of runs and operations "
    "of each\n"
    "       attest_gpu_measure golden [KERNEL]...    bytes counted on small problems, emulated "
    "and,\n"
    "                                                where there is a device, on it; default: all\n"
    "       attest_gpu_measure families PROBLEM LOSS  kernels with tiles of all sizes: their fast "
    "memory\n"
    "KERNEL is a name like gpu/flash2. Exit codes: 0 answered; 1 a device is needed and there is\n"
    "none, or it refused; 2 bad words, an unknown kernel or a problem that it does not take.\n";

void require_device() {
  if (!device().present()) throw DeviceError("no CUDA device: " + device().absent_because);
}

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

json run(const std::string& kernel, const std::string& problem) {
  require_device();
  DeviceCall call(kernel, problem);
  for (const Direction& direction : directions_of(kernel)) call.run(direction.bit);
  require(cudaDeviceSynchronize(), problem);
  return {{"kernel", kernel}, {"problem", problem}};
}

json time(const std::string& kernel, const std::string& problem) {
  require_device();
  constexpr int kRepetitions = 21;
  DeviceCall call(kernel, problem);
  json object{{"kernel", kernel}, {"problem", problem}};
  for (const Direction& direction : directions_of(kernel)) {
    const std::string name = direction.name;
    object[name + "_seconds"] =
        seconds_of_runs(kRepetitions, nullptr, [&] { call.run(direction.bit); });
    if (direction.bit != ATTEST_LOSS_GRADIENT) {
      object[name + "_operations"] = call.operations(direction.bit);
    }
  }
  return object;
}

int answer(const std::vector<std::string>& words) {
  constexpr int kUsageStatus = 2;
  const std::string verb = words.empty() ? "" : words[0];
  json object;
  if (words.size() == 1 && verb == "device") {
    object = device_json();
  } else if (words.size() == 1 && verb == "rates") {
    require_device();
    object = rates();
  } else if (words.size() == 1 && verb == "kernels") {
    object = kernels_json();
  } else if (words.size() == 3 && verb == "run") {
    object = run(words[1], words[2]);
  } else if (words.size() == 3 && verb == "count") {
    require_device();
    object = count_json(words[1], words[2]);
  } else if (words.size() == 3 && verb == "time") {
    object = time(words[1], words[2]);
  } else if (words.size() == 3 && verb == "families") {
    object = families_json(words[1], words[2]);
  } else if (verb == "golden") {
    object = golden_json({words.begin() + 1, words.end()});
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
