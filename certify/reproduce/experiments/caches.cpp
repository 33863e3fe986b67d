// Caches that choose for themselves against a schedule that says what to hold.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "certify/count/count_trace.hpp"
#include "certify/reproduce/counted.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

// Results of one tile's recorded run, over caches from its peak to twice that.
struct Replays {
  double lru_at_peak = 0, lru_equal_from = 0, worst_belady = 0;
  int compared = 0, within = 0;  // Sleator and Tarjan's inequality
};

Replays replay_tile(const Laboratory& lab, const Problem& problem, const std::string& text,
                    Plot& plot) {
  const AbiProblem form(problem, 1);
  const auto schedule = lab.schedules.make(text, *form.get(), io::FastMemory{});
  const io::Traffic counted = schedule->closed_form();
  const std::int64_t peak = counted.peak.words.value();
  TraceOptions options;
  for (int tenths = 10; tenths <= 20; ++tenths) {
    const std::int64_t size = (peak * tenths + 9) / 10;
    for (const io::CacheSpec::Kind kind : {io::CacheSpec::Kind::lru, io::CacheSpec::Kind::belady}) {
      options.caches.push_back({kind, size, 1, 1});
    }
  }
  const auto explicit_reads = static_cast<double>(counted.reads.words.value());
  Curve lru{"LRU, " + text, Curve::Kind::measured, {}},
      belady{"Belady, " + text, Curve::Kind::measured, {}};
  Replays found;
  double optimum = 0;                                         // of a cache of exactly the peak
  std::vector<std::pair<std::int64_t, double>> least_recent;  // words held and read by LRU
  for (const Replayed& replayed :
       record_schedule(*schedule, problem, io::FastMemory::of_words(peak), options)) {
    const auto reads = static_cast<double>(replayed.traffic.read_words().value());
    const double size = static_cast<double>(replayed.cache.words) / static_cast<double>(peak);
    const double ratio = reads / explicit_reads;
    if (replayed.cache.kind == io::CacheSpec::Kind::belady) {
      belady.points.emplace_back(size, ratio);
      found.worst_belady = std::max(found.worst_belady, ratio);
      if (replayed.cache.words == peak) optimum = reads;
    } else {
      lru.points.emplace_back(size, ratio);
      least_recent.emplace_back(replayed.cache.words, reads);
      if (replayed.cache.words == peak) found.lru_at_peak = ratio;
      if (ratio > 1) found.lru_equal_from = 0;
      if (ratio <= 1 && found.lru_equal_from == 0) found.lru_equal_from = size;
    }
  }
  // LRU_M <= M / (M - h + 1) OPT_h + h with h the peak.
  for (const auto& [held, reads] : least_recent) {
    const auto h = static_cast<double>(peak), m = static_cast<double>(held);
    ++found.compared;
    found.within += reads <= m / (m - h + 1) * optimum + h ? 1 : 0;
  }
  plot.curves.push_back(std::move(lru));
  plot.curves.push_back(std::move(belady));
  return found;
}

Findings run(const Laboratory& lab) {
  const std::int64_t seqlen = lab.seqlen_or(48, 64), d = lab.head_dim_or(8);
  const Problem problem = square_problem(seqlen, d);
  Plot plot{"caches",
            fmt::format("flash2 on N = {}, d = {}: words read over the schedule's", seqlen, d),
            "cache size over the schedule's peak",
            "words read / explicit",
            {},
            Plot::Scale::linear,
            Plot::Scale::linear};
  std::string lru, belady;
  Outcome explicit_control = Outcome::reproduced, optimal = Outcome::reproduced;
  int compared = 0, within = 0;
  for (const std::string text : {"flash2:bq=8,bk=8", "flash2:bq=16,bk=1"}) {
    const Replays found = replay_tile(lab, problem, text, plot);
    compared += found.compared;
    within += found.within;
    lru += fmt::format(
        "{}{} reads {:.2f} times its words in LRU of exactly its peak, no more from "
        "{:.2f} times the peak on",
        lru.empty() ? "" : "; ", text, found.lru_at_peak, found.lru_equal_from);
    belady += fmt::format("{}{} at most {:.3f} times", belady.empty() ? "" : "; ", text,
                          found.worst_belady);
    if (found.lru_at_peak > 1) {
      explicit_control =
          std::max(explicit_control,
                   found.lru_equal_from > 0 ? Outcome::corrected : Outcome::not_reproduced);
    }
    if (found.worst_belady > 1) optimal = Outcome::not_reproduced;
  }
  Findings findings;
  findings.claims = {
      {"words counted with explicit control are what an optimal cache of that size reads, or more",
       "Belady 1966; the model of Hong and Kung 1981", belady, optimal},
      {"words counted with explicit control are what LRU of that size reads",
       "the model of Hong and Kung 1981, taken for a hardware cache", lru, explicit_control},
      {"LRU of M words reads at most M / (M - h + 1) times an optimal cache of h words, and h",
       "Sleator and Tarjan 1985", fmt::format("{} of {} replays, h the peak", within, compared),
       within == compared ? Outcome::reproduced : Outcome::not_reproduced}};
  findings.plots.push_back(std::move(plot));
  return findings;
}

}  // namespace

Experiment caches_experiment() {
  return {"caches",
          "caches against explicit control",
          {{"seqlen", 16, 128}, {"head-dim", 1, 64}},
          run,
          10};
}

}  // namespace attest::certify
