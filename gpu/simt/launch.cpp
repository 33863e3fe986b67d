#include "gpu/simt/launch.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <exception>
#include <numeric>
#include <optional>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "gpu/simt/watch.hpp"

namespace attest::simt {
namespace {

void require_valid(const LaunchShape& shape) {
  const auto text = [](Index3 extents) {
    return std::to_string(extents.x) + " x " + std::to_string(extents.y) + " x " +
           std::to_string(extents.z);
  };
  const auto product = [](Index3 extents) {
    return std::uint64_t{extents.x} * extents.y * extents.z;
  };
  const auto within = [](Index3 extents, Index3 most) {
    return extents.x <= most.x && extents.y <= most.y && extents.z <= most.z;
  };
  // CUDA programming guide, technical specifications per compute capability.
  constexpr Index3 kMostBlocks{(1U << 31) - 1, 65535, 65535}, kMostThreads{1024, 1024, 64};
  if (product(shape.grid) == 0 || !within(shape.grid, kMostBlocks)) {
    throw InvalidProblem("grid: " + text(shape.grid) +
                         " blocks; every extent must be at least 1, and at most " +
                         text(kMostBlocks));
  }
  const std::uint64_t lanes = product(shape.block);
  if (lanes == 0 || lanes > kMostLanes || !within(shape.block, kMostThreads)) {
    throw InvalidProblem("block: " + text(shape.block) + " threads; a block has 1 to " +
                         std::to_string(kMostLanes) + ", at most " + text(kMostThreads));
  }
  if (shape.dynamic_shared_bytes < 0) {
    throw InvalidProblem("block: " + std::to_string(shape.dynamic_shared_bytes) +
                         " bytes of dynamic shared memory; there must be at least 0");
  }
}

Index3 index_of(std::uint64_t number, Index3 grid) {
  return {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
          static_cast<unsigned>(number / grid.x / grid.y)};
}

// The block that is k-th to begin: a bijection of 0 .. count - 1 without a table of them.
std::uint64_t block_at(std::uint64_t k, std::uint64_t count, const Emulation& emulation) {
  switch (emulation.order) {
    case Order::ascending:
      return k;
    case Order::descending:
      return count - 1 - k;
    case Order::shuffled:
      break;
  }
  // A stride without a common divisor visits every block.
  std::uint64_t stride = mix(emulation.seed, count) % count | 1;
  while (std::gcd(stride, count) != 1) ++stride;
  const std::uint64_t offset = mix(count, emulation.seed) % count;
  return (offset + k % count * (stride % count)) % count;
}

}  // namespace

void LaunchReport::add_traffic(const std::vector<GlobalTraffic>& moved) {
  traffic.resize(std::max(traffic.size(), moved.size()));
  for (std::size_t k = 0; k < moved.size(); ++k) traffic[k] += moved[k];
}

LaunchReport& LaunchReport::operator+=(const LaunchReport& later) {
  diagnoses.insert(diagnoses.end(), later.diagnoses.begin(), later.diagnoses.end());
  blocks_given_up += later.blocks_given_up;
  shared_bytes = std::max(shared_bytes, later.shared_bytes);
  switches += later.switches;
  instructions += later.instructions;
  add_traffic(later.traffic);
  return *this;
}

std::string LaunchReport::to_string() const {
  std::string text;
  for (const Diagnosis& diagnosis : diagnoses) text += diagnosis.to_string() + "\n";
  if (blocks_given_up > 0) {
    text += std::to_string(blocks_given_up) +
            (blocks_given_up == 1 ? " block was given up\n" : " blocks were given up\n");
  }
  return text;
}

namespace {

// Each block once.
LaunchReport run_once(const LaunchShape& shape, const Emulation& emulation,
                      const RunBlock& run_block, GlobalRaces* races) {
  const std::uint64_t count =
      std::uint64_t{shape.grid.x} * shape.grid.y * static_cast<std::uint64_t>(shape.grid.z);
  LaunchReport report;
  std::exception_ptr error;  // the first one; none may leave the parallel region
#pragma omp parallel num_threads(std::max(emulation.threads, 1))
  {
    LaunchReport own;
    std::exception_ptr own_error;
#pragma omp for schedule(dynamic, 1)
    for (std::uint64_t k = 0; k < count; ++k) {
      if (own_error) continue;
      try {
        run_block(index_of(block_at(k, count, emulation), shape.grid), emulation, races, own);
      } catch (...) {
        own_error = std::current_exception();
      }
    }
#pragma omp critical(attest_simt_launch)
    {
      report += own;
      if (own_error) error = own_error;
    }
  }
  if (error) std::rethrow_exception(error);
  std::stable_sort(report.diagnoses.begin(), report.diagnoses.end(),
                   [](const Diagnosis& a, const Diagnosis& b) {
                     const auto key = [](Index3 i) { return std::array{i.z, i.y, i.x}; };
                     return key(a.block) < key(b.block);
                   });
  if (report.diagnoses.size() > emulation.most_diagnoses) {
    report.diagnoses.resize(emulation.most_diagnoses);
  }
  return report;
}

}  // namespace

LaunchReport run_blocks(const LaunchShape& shape, const Emulation& wanted,
                        const GlobalMemory& global, const RunBlock& run_block,
                        LateReads late_reads) {
  require_valid(shape);
  Watch* const watch = Watch::current();
  const Emulation emulation = watch == nullptr ? wanted : watch->emulation_of(wanted);
  std::optional<GlobalRaces> races;
  if (emulation.shared_checks == SharedChecks::on) races.emplace(global);
  LaunchReport report = run_once(shape, emulation, run_block, races ? &*races : nullptr);
  const bool can_judge = late_reads == LateReads::judged && report.blocks_given_up == 0;
  if (races && races->found_late_reads() && can_judge) {
    races->restore_memory();
    GlobalRaces knowing(global, races->late_reads());
    LaunchReport again = run_once(shape, emulation, run_block, &knowing);
    if (!knowing.late_matters()) report = std::move(again);
  }
  if (watch != nullptr) watch->add(report);
  return report;
}

LaunchReport launch_blocks(const LaunchShape& shape, const Emulation& wanted,
                           const GlobalMemory& global, const std::function<void()>& kernel) {
  return run_blocks(
      shape, wanted, global,
      [&](Index3 index, const Emulation& emulation, GlobalRaces* races, LaunchReport& report) {
        static thread_local Block block;  // keeps its lanes' stacks from launch to launch
        const std::uint64_t switches = block.switches();
        const bool ended =
            block.run(emulation, shape.grid, shape.block, index, shape.dynamic_shared_bytes, global,
                      races, kernel, report.diagnoses);
        report.blocks_given_up += ended ? 0 : 1;
        report.switches += block.switches() - switches;
        report.add_traffic(block.traffic());
        report.shared_bytes = std::max(report.shared_bytes, block.shared().used_bytes());
      });
}

}  // namespace attest::simt
