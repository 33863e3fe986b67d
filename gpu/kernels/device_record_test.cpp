// Bytes that kernels counted on devices, on record in gpu/results, against those of the emulation.
// Where a kernel is meant to move others, take the rows that are no longer true out of the records,
// and say so in their README, until a device has counted again.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/testing/each_call.hpp"

namespace attest::gpu {
namespace {

using nlohmann::json;

// The rows of each file that have counts.
std::vector<json> records() {
  std::set<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(ATTEST_DEVICE_RESULTS)) {
    if (entry.path().extension() == ".jsonl") paths.insert(entry.path());
  }
  std::vector<json> all;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path);
    json counts = json::array();
    for (std::string line; std::getline(file, line);) {
      json row = json::parse(line);
      if (row.at("kind") == "golden" && row.contains("device")) counts.push_back(std::move(row));
    }
    if (!counts.empty()) all.push_back(std::move(counts));  // a run may have been stopped before
  }
  return all;
}

const EmulatedKernel* kernel_named(const std::string& name) {
  const std::vector<const EmulatedKernel*>& all = emulated_kernels();
  const auto found = std::find_if(all.begin(), all.end(), [&](const EmulatedKernel* kernel) {
    return kernel->description().name == name;
  });
  return found == all.end() ? nullptr : *found;
}

// The rows of a record, as "kernel problem direction", whose bytes are not those of the emulation.
std::set<std::string> different(const json& counts) {
  std::map<std::string, json> on_device;
  std::set<std::tuple<std::string, std::string>> calls;
  const auto key = [](const std::string& kernel, const std::string& problem,
                      const std::string& direction) {
    return kernel + " " + problem + " " + direction;
  };
  for (const json& row : counts) {
    on_device[key(row.at("kernel"), row.at("problem"), row.at("direction"))] = row.at("device");
    calls.emplace(row.at("kernel"), row.at("problem"));
  }
  for (const auto& [name, problem] : calls) {
    const EmulatedKernel* const kernel = kernel_named(name);
    if (kernel == nullptr) continue;
    const std::string &of = name, &on = problem;
    testing::for_each_call(
        *kernel, problem,
        [&](const char* direction, const auto&, const auto& emulation, auto& call) {
          simt::GlobalTraffic sum;
          for (const simt::GlobalTraffic& each : emulation.run(call, {}).traffic) sum += each;
          const auto found = on_device.find(key(of, on, direction));
          if (found == on_device.end()) return;
          if (found->second.at("read_bytes") == sum.read_bytes &&
              found->second.at("written_bytes") == sum.written_bytes) {
            on_device.erase(found);
          }
        });
  }
  std::set<std::string> left;
  for (const auto& [row, bytes] : on_device) left.insert(row);
  return left;
}

TEST_CASE("bytes counted on a device are those of the emulation", "[gpu]") {
  const std::vector<json> all = records();
  REQUIRE(!all.empty());
  for (const json& counts : all) {
    CHECK(counts.size() > 200);
    CHECK(different(counts).empty());
  }
}

// The deliberately wrong subjects.
TEST_CASE("bytes counted otherwise, or of what there is not, are seen", "[gpu]") {
  const json record = records().front();
  json counts = json::array();
  constexpr std::size_t kRows = 90;
  std::copy_n(record.begin(), kRows, std::back_inserter(counts));
  const auto name = [](const json& row) {
    return row.at("kernel").get<std::string>() + " " + row.at("problem").get<std::string>() + " " +
           row.at("direction").get<std::string>();
  };
  json& read = counts.at(3);
  read["device"]["read_bytes"] = read["device"]["read_bytes"].get<std::int64_t>() + 4;
  json& written = counts.at(40);
  written["device"]["written_bytes"] = written["device"]["written_bytes"].get<std::int64_t>() - 4;
  json& unknown = counts.at(80);
  unknown["kernel"] = "gpu/none";
  CHECK(different(counts) == std::set<std::string>{name(read), name(written), name(unknown)});
}

}  // namespace
}  // namespace attest::gpu
