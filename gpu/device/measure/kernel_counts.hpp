#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// Answers of attest_gpu_measure about the kernels that have a device side, by their names. Each
/// throws InvalidProblem for an unknown name.
namespace attest::gpu::cuda {

struct Direction {
  std::uint32_t bit;  // ATTEST_FORWARD, …
  const char* name;
};

/// Lists the directions that the kernel has, forward first.
std::vector<Direction> directions_of(const std::string& kernel);

/// {"kernels": [{"kernel", "directions"}]}; needs no device.
nlohmann::json kernels_json();

/// Bytes counted on the device, all directions together. Throws DeviceError; InvalidProblem for
/// what no launch takes.
nlohmann::json count_json(const std::string& kernel, const std::string& problem);

/// {"counts": [{"kernel", "problem", "direction", "emulated", "device"}]} of the small problems
/// that the kernels' tests have, for those named, or all; "device" where there is one.
nlohmann::json golden_json(const std::vector<std::string>& kernels);

/// {"families": [{"family", "direction", "kernel", "problem", "schedule", "fast_bytes"}]}
/// of the kernels of gpu/kernels/emulated/families.hpp that take the problem, or that of the loss
/// gradient: shared memory and registers of a block. Needs no device.
nlohmann::json families_json(const std::string& problem, const std::string& loss_problem);

}  // namespace attest::gpu::cuda
