#include "certify/count/count_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "certify/campaign/host.hpp"
#include "certify/count/count.hpp"
#include "core/text/thousands.hpp"

namespace attest::certify {
namespace {

bool in_bytes(io::FastMemory capacity) { return capacity.words == io::FastMemory::kUnlimited; }

std::int64_t size_of(io::FastMemory capacity) {
  return in_bytes(capacity) ? capacity.bytes : capacity.words;
}

using Cells = std::vector<std::string>;

Cells cells(const SweepRow& row) {
  const bool bytes = in_bytes(row.capacity);
  Cells cells{thousands(size_of(row.capacity))};
  if (row.count) {
    const io::ScheduleCount& count = *row.count;
    const io::Words moved = bytes ? count.counted.total_bytes() : count.counted.total_words();
    cells.push_back(thousands(moved.value()));
    if (const auto ratio = count.ratio()) {
      const std::int64_t width = bytes ? count.narrowest_bytes : 1;
      cells.push_back(thousands((io::Words(count.lower->words) * width).value()));
      cells.push_back(fmt::format("{:.3f}", *ratio));
      cells.push_back(count.lower->name);
    } else {
      cells.insert(cells.end(), {"-", "-", "no lower bound"});
    }
    cells.push_back(count.schedule);
  } else {
    cells.insert(cells.end(), {"-", "-", "-", "-", "does not fit"});
  }
  if (row.best) {
    const io::Candidate& best = row.best->best();
    cells.push_back(thousands(row.best->moved(best).value()));
    cells.push_back(best.schedule);
  }
  return cells;
}

// Numbers are set to the right, names to the left.
std::string aligned(const std::vector<Cells>& table, const std::vector<bool>& is_number) {
  std::vector<std::size_t> widths;
  for (const Cells& line : table) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const Cells& line : table) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      const bool last = i + 1 == line.size();
      text += is_number[i] ? fmt::format("{:>{}}", line[i], widths[i])
                           : fmt::format("{:<{}}", line[i], last ? 0 : widths[i]);
      text += last ? "\n" : "  ";
    }
  }
  return text;
}

}  // namespace

std::string sweep_text(const std::vector<SweepRow>& rows) {
  const bool bytes = !rows.empty() && in_bytes(rows.front().capacity);
  const bool with_best = std::any_of(rows.begin(), rows.end(),
                                     [](const SweepRow& row) { return row.best.has_value(); });
  const std::string unit = bytes ? "bytes" : "words";
  std::vector<Cells> table{
      {"M, " + unit, unit + " moved", "lower bound", "ratio", "bound", "schedule"}};
  if (with_best) table.front().insert(table.front().end(), {unit + " of best", "best schedule"});
  for (const SweepRow& row : rows) table.push_back(cells(row));
  return aligned(table, {true, true, true, true, false, false, true, false});
}

nlohmann::json sweep_json(const std::vector<SweepRow>& rows, const Problem& problem,
                          const std::string& inputs, int exit_code) {
  nlohmann::json counts = nlohmann::json::array(), refused = nlohmann::json::array();
  for (const SweepRow& row : rows) {
    if (row.count) {
      const int code = row.count->faults().empty() ? 0 : exit_code;
      counts.push_back(count_json(*row.count, row.best, {}, problem, code, inputs));
    } else {
      refused.push_back({{"fast_memory", size_of(row.capacity)}, {"reason", row.refusal}});
    }
  }
  return {{"schema", "attest-count-sweep-1"},
          {"version", version()},
          {"counts", counts},
          {"refused", refused},
          {"exit_code", exit_code}};
}

}  // namespace attest::certify
