#include "certify/reproduce/claims/triton_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "core/problem.hpp"
#include "io/schedule/best_schedule.hpp"
#include "io/schedule/schedule_count.hpp"

namespace attest::certify {
namespace {

constexpr std::int64_t kWordBytes = 2;  // of f16, the narrowest that moves
constexpr double kKib = 1024;

// Statements about one direction.
struct Subject {
  Direction direction;
  std::string suffix;  // of tables and plots
  std::string square;  // the family of square tiles
  std::string order, order_source, small_source, bound_source;
};

std::vector<Subject> subjects() {
  return {
      {Direction::forward, "", "square_tiled",
       "a block reads its rows of Q once and all of K and V, and nothing else is moved but O "
       "and LSE, once",
       "Dao 2023, section 3.2", "Saha and Ye 2024, Theorem 1.1 and Algorithm 1",
       "Saha and Ye 2024, Theorem 1.2; docs/theory/bounds"},
      {Direction::backward, "_backward", "square_tiled_bwd",
       "backward a block of queries reads all of K and V, a block of keys all of Q and dO, each "
       "its own rows once, and nothing else is moved but rows of O, LSE and delta, and dQ, dK "
       "and dV once",
       "Dao 2023, section 3.1, with dQ in a pass of its own: two_pass of docs/theory/schedules",
       "our tiles, after those of Saha and Ye 2024; order of Li et al. 2024, Theorem 1.1",
       "our Theorem C (docs/theory), of the order of Li et al. 2024, Theorem 1.1"}};
}

// Bytes that schedules move in the fast memory of a pass, and every kernel must.
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

Beside beside(const io::ScheduleRegistry& schedules, const TritonPass& pass) {
  const Problem problem =
      Problem::parse(fmt::format("sq={},d={},dtype=f16", pass.seqlen, pass.head_dim));
  const AbiProblem form(problem, 1);
  const auto bound = io::greatest(io::bounds_of(pass.direction, problem, io::plain_class(problem),
                                                pass.fast_bytes / kWordBytes));
  return {io::best_schedule(schedules, pass.direction, *form.get(),
                            io::FastMemory::of_bytes(pass.fast_bytes)),
          bound ? bound->words * kWordBytes : 0};
}

double over_square(const TritonPass& pass) {
  return static_cast<double>(pass.fast_bytes / kWordBytes) /
         static_cast<double>(pass.head_dim * pass.head_dim);
}

double ratio(std::int64_t moved, std::int64_t lower) {
  return static_cast<double>(moved) / static_cast<double>(lower);
}

Claim order_claim(const Subject& subject, const std::vector<TritonPass>& passes) {
  const auto equal = std::count_if(passes.begin(), passes.end(), [](const TritonPass& one) {
    return one.words == words_of_order(one);
  });
  const bool all = equal == static_cast<std::ptrdiff_t>(passes.size());
  return {subject.order, subject.order_source,
          fmt::format("in {} of {} passes as compiled, to the word", equal, passes.size()),
          all ? Outcome::reproduced : Outcome::not_reproduced};
}

// Square tiles against Triton's order where a block's fast memory is below d^2 words.
Claim small_claim(const Subject& subject, int fewer, int compared) {
  const Outcome outcome = compared == 0       ? Outcome::not_compared
                          : fewer == compared ? Outcome::reproduced
                                              : Outcome::not_reproduced;
  return {
      fmt::format("for M < d^2 {} moves fewer words than FlashAttention's order", subject.square),
      subject.small_source,
      fmt::format("fewer than Triton's kernels at {} of {} sizes of fast memory below d^2", fewer,
                  compared),
      outcome};
}

Claim bound_claim(const Subject& subject, int above, int compared, double nearest) {
  return {fmt::format("no kernel moves fewer words {} than the lower bound for its fast memory",
                      name(subject.direction)),
          subject.bound_source,
          fmt::format("{} of {} passes do not; the nearest moves {:.2f} times as many", above,
                      compared, nearest),
          above == compared && compared > 0 ? Outcome::reproduced : Outcome::not_reproduced};
}

Plot empty_plot(const Subject& subject, const TritonPass& pass) {
  Plot plot{fmt::format("triton_words{}_{}", subject.suffix, pass.head_dim),
            fmt::format("flash attention in Triton as compiled, {}, N = {}, d = {}, f16",
                        name(pass.direction), pass.seqlen, pass.head_dim),
            "fast memory of a block, KiB",
            "bytes moved",
            {{"Triton, tiles of 16 to 128", Curve::Kind::measured, {}},
             {"best schedule", Curve::Kind::measured, {}},
             {subject.square, Curve::Kind::measured, {}},
             {"lower bound", Curve::Kind::bound, {}}}};
  plot.mark_x = static_cast<double>(pass.head_dim * pass.head_dim * kWordBytes) / kKib;
  plot.mark = "d^2 words";
  return plot;
}

void add_direction(Findings& findings, const io::ScheduleRegistry& schedules,
                   const Subject& subject, const std::vector<TritonPass>& passes) {
  Table table{"triton_words" + subject.suffix,
              fmt::format("bytes that a flash attention in Triton moves {}, as compiled, beside "
                          "the same fast memory",
                          name(subject.direction)),
              {"d", "tile", "fast memory of a block", "over d^2 words", "Triton", "best schedule",
               "its bytes", subject.square, "lower bound", "Triton over it"},
              {}};
  std::map<std::int64_t, Plot> plots;  // by head dimension
  int small = 0, square_fewer = 0, compared = 0, above = 0;
  double nearest = 0;
  for (const TritonPass& pass : passes) {
    const Beside there = beside(schedules, pass);
    const io::Candidate& best = there.schedules.best();
    const std::int64_t best_bytes = best.traffic.total_bytes().value();
    const std::optional<std::int64_t> square = there.of(subject.square);
    const double over_bound = ratio(pass.moved_bytes, there.lower_bytes);
    table.rows.push_back(
        {std::to_string(pass.head_dim), std::to_string(pass.tile),
         fmt::format("{}{}", pass.fast_bytes, pass.spills ? ", spilled words among them" : ""),
         fmt::format("{:.2f}", over_square(pass)), std::to_string(pass.moved_bytes), best.schedule,
         std::to_string(best_bytes), square ? std::to_string(*square) : "does not fit",
         std::to_string(there.lower_bytes), fmt::format("{:.2f}", over_bound)});
    if (pass.spills) continue;
    Plot& plot = plots.try_emplace(pass.head_dim, empty_plot(subject, pass)).first->second;
    const double x = static_cast<double>(pass.fast_bytes) / kKib;
    const auto add = [x](Curve& curve, std::int64_t bytes) {
      curve.points.emplace_back(x, static_cast<double>(bytes));
    };
    add(plot.curves[0], pass.moved_bytes);
    add(plot.curves[1], best_bytes);
    if (square) add(plot.curves[2], *square);
    add(plot.curves[3], there.lower_bytes);
    if (over_square(pass) < 1 && square) {
      ++small;
      square_fewer += *square < pass.moved_bytes ? 1 : 0;
    }
    ++compared;
    above += pass.moved_bytes >= there.lower_bytes ? 1 : 0;
    nearest = nearest == 0 ? over_bound : std::min(nearest, over_bound);
  }
  findings.tables.push_back(std::move(table));
  for (auto& [head_dim, plot] : plots) findings.plots.push_back(std::move(plot));
  findings.claims.push_back(order_claim(subject, passes));
  findings.claims.push_back(small_claim(subject, square_fewer, small));
  findings.claims.push_back(bound_claim(subject, above, compared, nearest));
}

}  // namespace

Findings triton_words(const io::ScheduleRegistry& schedules,
                      const std::vector<TritonPass>& passes) {
  Findings findings;
  for (const Subject& subject : subjects()) {
    std::vector<TritonPass> of_direction;
    std::copy_if(
        passes.begin(), passes.end(), std::back_inserter(of_direction),
        [&subject](const TritonPass& pass) { return pass.direction == subject.direction; });
    if (!of_direction.empty()) add_direction(findings, schedules, subject, of_direction);
  }
  return findings;
}

}  // namespace attest::certify
