#include "certify/reproduce/claims/device_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "certify/reproduce/fit.hpp"
#include "core/error.hpp"
#include "core/problem.hpp"
#include "core/text/thousands.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

constexpr std::int64_t kWordBytes = 4;
constexpr std::array<const char*, 3> kDirections{"forward", "backward", "loss_gradient"};

DeviceRun run_of(const json& line) {
  DeviceRun run{line.at("direction"),
                line.at("family"),
                line.at("kernel"),
                line.at("problem"),
                line.at("fast_bytes"),
                line.at("words"),
                0,
                {}};
  if (line.contains("profiled")) {
    const json& profiled = line.at("profiled");
    run.moved_bytes =
        profiled.at("read_bytes").get<double>() + profiled.at("written_bytes").get<double>();
  }
  const json& quartiles = line.at("seconds_quartiles");
  run.time = {quartiles.at(0), line.at("seconds"), quartiles.at(1)};
  return run;
}

void add(const json& line, std::vector<DeviceRecord>& records) {
  const std::string kind = line.at("kind");
  if (kind == "run") {
    const std::string device = line.at("device");
    // A later run on the same device says it anew.
    records.erase(std::remove_if(records.begin(), records.end(),
                                 [&](const DeviceRecord& one) { return one.device == device; }),
                  records.end());
    records.push_back({device, line.at("date").get<std::string>().substr(0, 10), 0, 0, {}, {}});
    return;
  }
  if (records.empty()) throw InvalidProblem("no record of kind 'run' comes before it");
  DeviceRecord& record = records.back();
  if (kind == "golden") {
    ++record.calls;
    record.equal_calls += line.at("device") == line.at("emulated") ? 1 : 0;
  } else if (kind == "families") {
    record.runs.push_back(run_of(line));
  } else if (kind == "density" && line.contains("forward_density")) {
    record.densities.push_back(
        {line.at("forward_density"), line.at("forward_speedup"), line.at("backward_speedup")});
  }
}

std::string where(const DeviceRecord& record) { return record.device + ", " + record.date; }

Claim counts_claim(const DeviceRecord& record) {
  return {"the bytes that a device counts are those of the emulation, call by call",
          "this project, gpu/results",
          fmt::format("{} of {} calls on {}", record.equal_calls, record.calls, where(record)),
          record.calls == 0                    ? Outcome::not_compared
          : record.equal_calls == record.calls ? Outcome::reproduced
                                               : Outcome::not_reproduced};
}

bool of_squares(const DeviceRun& run) {
  return run.family.find("square_tiled") == 0 || run.family == "loss_small";
}

std::int64_t square_bytes(const DeviceRun& run) {
  const std::int64_t d = Problem::parse(run.problem).head_dim_qk;
  return d * d * kWordBytes;
}

// Square tiles against the run of FlashAttention's order with the least fast memory that has as
// much: what is won is won with less.
Claim squares_claim(const DeviceRecord& record, const std::string& direction) {
  std::size_t fewer = 0, compared = 0;
  std::string told;
  for (const DeviceRun& square : record.runs) {
    if (square.direction != direction || !of_squares(square) || square.moved_bytes == 0) continue;
    if (square.fast_bytes >= square_bytes(square)) continue;
    const DeviceRun* flash = nullptr;
    for (const DeviceRun& other : record.runs) {
      if (other.direction != direction || of_squares(other) || other.problem != square.problem ||
          other.moved_bytes == 0 || other.fast_bytes < square.fast_bytes ||
          other.fast_bytes >= square_bytes(square)) {
        continue;
      }
      if (flash == nullptr || other.fast_bytes < flash->fast_bytes) flash = &other;
    }
    if (flash == nullptr) continue;
    ++compared;
    fewer += square.moved_bytes < flash->moved_bytes ? 1 : 0;
    told += fmt::format("{}{:.2f} times those of {} at {} bytes, {:.2f} times its time",
                        told.empty() ? "" : "; ", square.moved_bytes / flash->moved_bytes,
                        flash->family, thousands(square.fast_bytes),
                        square.time.median / flash->time.median);
  }
  return {
      fmt::format("{}: for M < d^2 square tiles move fewer bytes than FlashAttention's order",
                  direction),
      direction == "loss_gradient" ? "Li et al. 2024, Theorem 1.1 and Algorithm 6"
      : direction == "forward"     ? "Saha and Ye 2024, Theorem 1.1 and Algorithm 1"
                               : "Li et al. 2024, Theorem 1.1; our tiles, after Saha and Ye 2024",
      fmt::format("between L1 and L2 of {}, fewer at {} of {} sizes of a block's fast memory below "
                  "d^2, each against one with no less{}{}",
                  where(record), fewer, compared, told.empty() ? "" : ": ", told),
      compared == 0       ? Outcome::not_compared
      : fewer == compared ? Outcome::reproduced
      : fewer > 0         ? Outcome::corrected
                          : Outcome::not_reproduced};
}

// The sizes of one schedule, by fast memory.
using Families = std::map<std::pair<std::string, std::string>, std::vector<const DeviceRun*>>;

Families families_of(const DeviceRecord& record) {
  Families families;
  for (const DeviceRun& run : record.runs) families[{run.direction, run.family}].push_back(&run);
  for (auto& [family, runs] : families) {
    std::stable_sort(runs.begin(), runs.end(), [](const DeviceRun* a, const DeviceRun* b) {
      return a->fast_bytes < b->fast_bytes;
    });
  }
  return families;
}

Claim growing_claim(const DeviceRecord& record) {
  std::size_t steps = 0, faster = 0, fewer = 0;
  std::string other;
  for (const auto& [family, runs] : families_of(record)) {
    for (std::size_t k = 1; k < runs.size(); ++k) {
      ++steps;
      fewer += runs[k]->words < runs[k - 1]->words ? 1 : 0;
      // Quartiles apart.
      if (runs[k]->time.high < runs[k - 1]->time.low) {
        ++faster;
      } else {
        other += fmt::format("{}{} from {} to {} bytes", other.empty() ? "" : ", ", family.second,
                             thousands(runs[k - 1]->fast_bytes), thousands(runs[k]->fast_bytes));
      }
    }
  }
  return {"as blocks grow, fewer words move and the run time falls",
          "Dao et al. 2022, Figure 2 (middle)",
          fmt::format(
              "on {} at {} of {} steps fewer words, at {} the quartiles of times fall apart{}{}",
              where(record), fewer, steps, faster, other.empty() ? "" : "; not for ", other),
          steps == 0                          ? Outcome::not_compared
          : faster == steps && fewer == steps ? Outcome::reproduced
          : faster > 0                        ? Outcome::corrected
                                              : Outcome::not_reproduced};
}

Claim density_claim(const DeviceRecord& record, const char* direction,
                    double DeviceDensity::*speedup) {
  std::vector<std::pair<double, double>> points;
  for (const DeviceDensity& one : record.densities) {
    points.emplace_back(1 / one.density, one.*speedup);
  }
  Claim claim{fmt::format("{}: block sparsity makes attention faster in proportion to 1 / density",
                          direction),
              "Dao et al. 2022, section 3.3", "no densities on record", Outcome::not_compared};
  constexpr std::size_t kFewest = 3;
  if (points.size() < kFewest) return claim;
  const Exponent grows = fit_exponent(points);
  const auto& last = *std::max_element(points.begin(), points.end());
  claim.measured = fmt::format(
      "gpu/block_flash2 against gpu/flash2 on {}: {:.2f} times as fast at 1 / density {:.2f}; "
      "grows as 1 / "
      "density to the {}",
      where(record), last.second, last.first, grows.to_string());
  claim.outcome = !grows.is(1)        ? Outcome::not_reproduced
                  : grows.contains(1) ? Outcome::reproduced
                                      : Outcome::corrected;
  return claim;
}

Table runs_table(const DeviceRecord& record, std::size_t number) {
  Table table{fmt::format("device_runs_{}", number + 1),
              "kernels with tiles of several sizes on " + where(record) +
                  ": words counted, bytes between L1 and L2 profiled",
              {"direction", "schedule", "problem", "fast memory, bytes", "over d^2 words",
               "words counted", "bytes profiled", "milliseconds"},
              {}};
  constexpr double kMilli = 1e3;
  for (const auto& [family, runs] : families_of(record)) {
    for (const DeviceRun* run : runs) {
      table.rows.push_back(
          {run->direction, run->family, run->problem, std::to_string(run->fast_bytes),
           fmt::format("{:.2f}", static_cast<double>(run->fast_bytes) /
                                     static_cast<double>(square_bytes(*run))),
           std::to_string(run->words),
           run->moved_bytes == 0 ? "" : std::to_string(static_cast<std::int64_t>(run->moved_bytes)),
           fmt::format("{:.3f}", run->time.median * kMilli)});
    }
  }
  return table;
}

std::vector<Plot> plots_of(const DeviceRecord& record, std::size_t number) {
  std::map<std::string, Plot> plots;  // by direction
  for (const auto& [family, runs] : families_of(record)) {
    const auto& [direction, schedule] = family;
    const DeviceRun& first = *runs.front();
    const auto [at, is_new] =
        plots.try_emplace(direction, Plot{fmt::format("device_{}_{}", direction, number + 1),
                                          fmt::format("{}, {}, {}: bytes between L1 and L2",
                                                      record.device, direction, first.problem),
                                          "fast memory of a block, bytes",
                                          "bytes moved",
                                          {}});
    if (is_new) {
      at->second.mark_x = static_cast<double>(square_bytes(first));
      at->second.mark = "d^2 words";
    }
    Curve profiled{schedule + ", profiled", Curve::Kind::measured, {}},
        counted{schedule + ", counted", Curve::Kind::bound, {}};
    for (const DeviceRun* run : runs) {
      const auto x = static_cast<double>(run->fast_bytes);
      if (run->moved_bytes > 0) profiled.points.emplace_back(x, run->moved_bytes);
      counted.points.emplace_back(x, static_cast<double>(run->words * kWordBytes));
    }
    at->second.curves.push_back(std::move(profiled));
    at->second.curves.push_back(std::move(counted));
  }
  std::vector<Plot> list;
  for (const char* direction : kDirections) {
    const auto found = plots.find(direction);
    if (found != plots.end()) list.push_back(std::move(found->second));
  }
  return list;
}

}  // namespace

std::vector<DeviceRecord> parse_device_records(const std::string& lines) {
  std::vector<DeviceRecord> records;
  std::istringstream text(lines);
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    if (line.empty()) continue;
    try {
      add(json::parse(line), records);
    } catch (const json::exception& error) {
      throw InvalidProblem(fmt::format("results of devices: line {}: {}", number, error.what()));
    } catch (const InvalidProblem& error) {
      throw InvalidProblem(fmt::format("results of devices: line {}: {}", number, error.what()));
    }
  }
  return records;
}

Findings device_words(const std::vector<DeviceRecord>& records) {
  Findings findings;
  if (records.empty()) {
    findings.claims.push_back(
        {"the bytes that a device counts are those of the emulation, call by call",
         "this project, gpu/results", "no device is on record", Outcome::not_compared});
  }
  for (std::size_t number = 0; number < records.size(); ++number) {
    const DeviceRecord& record = records[number];
    findings.claims.push_back(counts_claim(record));
    for (const char* direction : kDirections) {
      findings.claims.push_back(squares_claim(record, direction));
    }
    findings.claims.push_back(growing_claim(record));
    findings.claims.push_back(density_claim(record, "forward", &DeviceDensity::forward_speedup));
    findings.claims.push_back(density_claim(record, "backward", &DeviceDensity::backward_speedup));
    if (record.runs.empty()) continue;
    findings.tables.push_back(runs_table(record, number));
    for (Plot& plot : plots_of(record, number)) findings.plots.push_back(std::move(plot));
  }
  return findings;
}

}  // namespace attest::certify
