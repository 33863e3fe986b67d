#include "certify/reproduce/claims/triton_words.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "core/error.hpp"
#include "core/problem.hpp"
#include "io/schedule/best_schedule.hpp"
#include "io/schedule/schedule_count.hpp"

namespace attest::certify {
namespace {

constexpr std::int64_t kWordBytes = 2;  // of f16, the narrowest that moves
constexpr double kKib = 1024;

// Bytes that schedules move in the fast memory of a launch, and every kernel must.
struct Beside {
  io::BestSchedule schedules;
  std::int64_t lower_bytes = 0;

  std::optional<std::int64_t> of(const std::string& family) const {
    for (const io::Candidate& one : schedules.candidates) {
      const bool is_it = one.schedule.substr(0, one.schedule.find(':')) == family;
      if (is_it && one.refusal.empty()) return one.traffic.total_bytes().value();
    }
    return std::nullopt;
  }
};

Beside beside(const io::ScheduleRegistry& schedules, const TritonLaunch& launch) {
  const Problem problem =
      Problem::parse(fmt::format("sq={},d={},dtype=f16", launch.seqlen, launch.head_dim));
  const AbiProblem form(problem, 1);
  const auto bound = io::greatest(io::bounds_of(
      Direction::forward, problem, io::plain_class(problem), launch.fast_bytes / kWordBytes));
  return {io::best_schedule(schedules, Direction::forward, *form.get(),
                            io::FastMemory::of_bytes(launch.fast_bytes)),
          bound ? bound->words * kWordBytes : 0};
}

bool below_square(const TritonLaunch& launch) {
  return launch.fast_bytes / kWordBytes < launch.head_dim * launch.head_dim;
}

Claim order_claim(const std::vector<TritonLaunch>& launches) {
  std::size_t equal = 0;
  for (const TritonLaunch& one : launches) {
    const std::int64_t tiles = (one.seqlen + one.tile - 1) / one.tile;
    const std::int64_t once = one.seqlen * one.head_dim;
    equal += one.read_q == once && one.read_k == tiles * once && one.read_v == tiles * once ? 1 : 0;
  }
  return {"a block reads its rows of Q once and all of K and V, and nothing else is read",
          "Dao 2023, section 3.2",
          fmt::format("in {} of {} launches as compiled, to the word", equal, launches.size()),
          equal == launches.size() && equal > 0 ? Outcome::reproduced : Outcome::not_reproduced};
}

// Square tiles against Triton's order where a block's fast memory is below d^2 words.
Claim small_claim(int fewer, int compared) {
  const Outcome outcome = compared == 0       ? Outcome::not_compared
                          : fewer == compared ? Outcome::reproduced
                                              : Outcome::not_reproduced;
  return {"for M < d^2 square tiles move fewer words than FlashAttention's order",
          "Saha and Ye 2024, Theorem 1.1 and Algorithm 1",
          fmt::format("fewer than Triton's kernel at {} of {} sizes of fast memory below d^2",
                      fewer, compared),
          outcome};
}

Claim bound_claim(std::size_t above, std::size_t compared, double nearest) {
  return {"no kernel moves fewer words than the lower bound for its fast memory",
          "Saha and Ye 2024, Theorem 1.2; docs/theory/bounds",
          fmt::format("{} of {} launches do not; the nearest moves {:.2f} times as many", above,
                      compared, nearest),
          above == compared && compared > 0 ? Outcome::reproduced : Outcome::not_reproduced};
}

}  // namespace

std::vector<TritonLaunch> parse_triton_words(const std::string& lines) {
  std::vector<TritonLaunch> launches;
  std::istringstream text(lines);
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    if (line.empty()) continue;
    try {
      const nlohmann::json one = nlohmann::json::parse(line);
      launches.push_back({one.at("head_dim"), one.at("tile"), one.at("seqlen"),
                          one.at("read").at("Q"), one.at("read").at("K"), one.at("read").at("V"),
                          one.at("moved_bytes"), one.at("fast_bytes"), one.at("local_bytes") > 0});
    } catch (const nlohmann::json::exception& error) {
      throw InvalidProblem(
          fmt::format("words of Triton: line {} is not one of docs/how-to/wild/triton_words.py: {}",
                      number, error.what()));
    }
  }
  return launches;
}

Findings triton_words(const io::ScheduleRegistry& schedules,
                      const std::vector<TritonLaunch>& launches) {
  Findings findings;
  findings.tables.push_back(
      {"triton_words",
       "bytes that a flash attention in Triton moves, as compiled, beside the same fast memory",
       {"d", "tile", "fast memory of a block", "over d^2 words", "Triton", "best schedule",
        "its bytes", "square_tiled", "lower bound"},
       {}});
  std::map<std::int64_t, Plot> plots;  // by head dimension
  int small = 0, square_fewer = 0;
  std::size_t compared = 0, above = 0;
  double nearest = 0;
  for (const TritonLaunch& launch : launches) {
    const Beside there = beside(schedules, launch);
    const io::Candidate& best = there.schedules.best();
    const std::int64_t best_bytes = best.traffic.total_bytes().value();
    const std::optional<std::int64_t> square = there.of("square_tiled");
    const double over_square = static_cast<double>(launch.fast_bytes / kWordBytes) /
                               static_cast<double>(launch.head_dim * launch.head_dim);
    findings.tables[0].rows.push_back(
        {std::to_string(launch.head_dim), std::to_string(launch.tile),
         fmt::format("{}{}", launch.fast_bytes, launch.spills ? ", spilled words among them" : ""),
         fmt::format("{:.2f}", over_square), std::to_string(launch.moved_bytes), best.schedule,
         std::to_string(best_bytes), square ? std::to_string(*square) : "does not fit",
         std::to_string(there.lower_bytes)});
    if (launch.spills) continue;
    Plot& plot = plots[launch.head_dim];
    if (plot.curves.empty()) {
      plot = {fmt::format("triton_words_{}", launch.head_dim),
              fmt::format("flash attention in Triton as compiled, N = {}, d = {}, f16",
                          launch.seqlen, launch.head_dim),
              "fast memory of a block, KiB",
              "bytes moved",
              {{"Triton, tiles of 16 to 128", Curve::Kind::measured, {}},
               {"best schedule", Curve::Kind::measured, {}},
               {"square_tiled", Curve::Kind::measured, {}},
               {"lower bound", Curve::Kind::bound, {}}}};
      plot.mark_x = static_cast<double>(launch.head_dim * launch.head_dim * kWordBytes) / kKib;
      plot.mark = "d^2 words";
    }
    const double x = static_cast<double>(launch.fast_bytes) / kKib;
    const auto add = [x](Curve& curve, std::int64_t bytes) {
      curve.points.emplace_back(x, static_cast<double>(bytes));
    };
    add(plot.curves[0], launch.moved_bytes);
    add(plot.curves[1], best_bytes);
    if (square) add(plot.curves[2], *square);
    add(plot.curves[3], there.lower_bytes);
    if (below_square(launch) && square) {
      ++small;
      square_fewer += *square < launch.moved_bytes ? 1 : 0;
    }
    ++compared;
    above += launch.moved_bytes >= there.lower_bytes ? 1 : 0;
    const double ratio =
        static_cast<double>(launch.moved_bytes) / static_cast<double>(there.lower_bytes);
    nearest = nearest == 0 ? ratio : std::min(nearest, ratio);
  }
  for (auto& [head_dim, plot] : plots) findings.plots.push_back(std::move(plot));
  findings.claims = {order_claim(launches), small_claim(square_fewer, small),
                     bound_claim(above, compared, nearest)};
  return findings;
}

}  // namespace attest::certify
