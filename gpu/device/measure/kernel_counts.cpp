#include "gpu/device/measure/kernel_counts.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "core/problem.hpp"
#include "gpu/device/measure/counted_run.hpp"
#include "gpu/device/probe.hpp"
#include "gpu/kernels/emulated/emulated_kernel.hpp"
#include "gpu/kernels/emulated/families.hpp"
#include "gpu/testing/each_call.hpp"

namespace attest::gpu::cuda {
namespace {

using gpu::testing::for_each_call;
using nlohmann::json;

json bytes_json(const simt::GlobalTraffic& bytes) {
  return {{"read_bytes", bytes.read_bytes}, {"written_bytes", bytes.written_bytes}};
}

constexpr std::int64_t kWordBytes = 4;

constexpr std::array kDirections{Direction{ATTEST_FORWARD, "forward"},
                                 Direction{ATTEST_BACKWARD, "backward"},
                                 Direction{ATTEST_LOSS_GRADIENT, "loss_gradient"}};

const char* name_of(std::uint32_t direction) {
  return std::find_if(kDirections.begin(), kDirections.end(),
                      [&](const Direction& one) { return one.bit == direction; })
      ->name;
}

std::vector<const EmulatedKernel*> kernels_named(const std::vector<std::string>& names) {
  if (names.empty()) return emulated_kernels();
  std::vector<const EmulatedKernel*> all;
  for (const std::string& name : names) all.push_back(&kernel_named(name));
  return all;
}

}  // namespace

std::vector<Direction> directions_of(const std::string& kernel) {
  std::vector<Direction> all;
  for (const Direction& direction : kDirections) {
    if ((kernel_named(kernel).description().directions & direction.bit) != 0) {
      all.push_back(direction);
    }
  }
  return all;
}

json kernels_json() {
  json list = json::array();
  for (const EmulatedKernel* kernel : emulated_kernels()) {
    const std::string name = kernel->description().name;
    json directions = json::array();
    for (const Direction& direction : directions_of(name)) directions.push_back(direction.name);
    list.push_back({{"kernel", name}, {"directions", directions}});
  }
  return {{"kernels", list}};
}

json count_json(const std::string& name, const std::string& problem) {
  const EmulatedKernel& kernel = kernel_named(name);
  simt::GlobalTraffic bytes;
  bool taken = false;
  for_each_call(kernel, problem, [&](const char*, const auto& args, const auto&, auto&) {
    bytes += counted(kernel.description().name, args);
    taken = true;
  });
  if (!taken)
    throw InvalidProblem(std::string(kernel.description().name) + ": no launch takes " + problem);
  json object = bytes_json(bytes);
  object["kernel"] = kernel.description().name;
  object["problem"] = problem;
  return object;
}

// Forward comes first where there is one: backward reads what it stored.
json golden_json(const std::vector<std::string>& names) {
  json rows = json::array();
  for (const EmulatedKernel* kernel : kernels_named(names)) {
    const std::vector<const char*> loss{"sq=70,d=33"};
    const bool attention = kernel->directions().forward.exists();
    const std::uint32_t features = kernel->description().features;
    for (const char* problem : attention ? gpu::testing::problems_of(features) : loss) {
      for_each_call(*kernel, problem,
                    [&](const char* name, const auto& args, const auto& direction, auto& emulated) {
                      json row{{"kernel", kernel->description().name},
                               {"problem", problem},
                               {"direction", name}};
                      if (device().present())
                        row["device"] = bytes_json(counted(kernel->description().name, args));
                      simt::GlobalTraffic bytes;
                      for (const simt::GlobalTraffic& each : direction.run(emulated, {}).traffic)
                        bytes += each;
                      row["emulated"] = bytes_json(bytes);
                      rows.push_back(std::move(row));
                    });
    }
  }
  json object{{"counts", rows}};
  if (!device().present()) object["absent_because"] = device().absent_because;
  return object;
}

json families_json(const std::string& attention, const std::string& loss) {
  json rows = json::array();
  for (const Family& family : families()) {
    const bool gradient = family.direction == ATTEST_LOSS_GRADIENT;
    const std::string& text = gradient ? loss : attention;
    const Problem problem = Problem::parse(text);
    const AbiProblem form(problem, 1);
    const AttentionShape shape = shape_of(*form.get());
    std::int64_t least_bytes = std::numeric_limits<std::int64_t>::max();
    for (const Variant& variant : family.variants) {
      const auto fast_bytes = [&](const auto& direction) -> std::int64_t {
        if (!direction.fits(shape, {})) return 0;
        return direction.plan(shape).fast_memory().words() * kWordBytes;
      };
      const EmulatedDirections& all = variant.kernel->directions();
      const std::int64_t bytes = gradient ? fast_bytes(all.loss_gradient)
                                 : family.direction == ATTEST_FORWARD ? fast_bytes(all.forward)
                                                                      : fast_bytes(all.backward);
      if (bytes == 0 || bytes >= least_bytes) continue;  // larger tiles need no more
      least_bytes = bytes;
      rows.push_back({{"family", family.name},
                      {"direction", name_of(family.direction)},
                      {"kernel", variant.kernel->description().name},
                      {"problem", text},
                      {"schedule", variant.schedule(shape)},
                      {"fast_bytes", bytes}});
    }
  }
  return {{"families", rows}};
}

}  // namespace attest::gpu::cuda
