// Caches that choose for themselves against a schedule that says what to hold.
#include <fmt/format.h>

#include <algorithm>

#include "certify/count_trace.hpp"
#include "certify/reproduce/counted.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

Findings run(const Laboratory& lab) {
  const std::int64_t seqlen = lab.seqlen_or(48, 64), d = lab.head_dim_or(8);
  const Problem problem = square_problem(seqlen, d);
  const AbiProblem form(problem, 1);
  const std::string text = "flash2:bq=8,bk=8";
  const auto schedule = lab.schedules.make(text, *form.get(), io::FastMemory{});
  const io::Traffic counted = schedule->closed_form();
  const std::int64_t peak = counted.peak.words.value();
  std::vector<std::int64_t> sizes;
  for (int tenths = 10; tenths <= 20; ++tenths) sizes.push_back((peak * tenths + 9) / 10);
  TraceOptions options;
  for (const std::int64_t size : sizes) {
    for (const io::CacheSpec::Kind kind : {io::CacheSpec::Kind::lru, io::CacheSpec::Kind::belady}) {
      options.caches.push_back({kind, size, 1, 1});
    }
  }
  const std::vector<Replayed> replays =
      record_schedule(*schedule, problem, io::FastMemory::of_words(peak), options);
  const auto explicit_reads = static_cast<double>(counted.reads.words.value());
  Plot plot{"caches",
            fmt::format("{} on N = {}, d = {}: words read over the schedule's", text, seqlen, d),
            "cache size over the schedule's peak",
            "words read / explicit",
            {{"LRU", Curve::Kind::measured, {}}, {"Belady (optimal)", Curve::Kind::measured, {}}}};
  double lru_at_peak = 0, lru_equal_from = 0, worst_belady = 0;
  for (const Replayed& replayed : replays) {
    const bool lru = replayed.cache.kind == io::CacheSpec::Kind::lru;
    const double size = static_cast<double>(replayed.cache.words) / static_cast<double>(peak);
    const double ratio =
        static_cast<double>(replayed.traffic.read_words().value()) / explicit_reads;
    plot.curves[lru ? 0 : 1].points.emplace_back(size, ratio);
    if (!lru) {
      worst_belady = std::max(worst_belady, ratio);
    } else {
      if (replayed.cache.words == peak) lru_at_peak = ratio;
      if (ratio > 1) lru_equal_from = 0;
      if (ratio <= 1 && lru_equal_from == 0) lru_equal_from = size;
    }
  }
  Findings findings;
  findings.claims.push_back(
      {"explicit control and an optimal cache of the same size read equally much",
       "the model of Hong and Kung 1981; Belady 1966",
       fmt::format("Belady's cache of the schedule's peak of {} words and more reads at most "
                   "{:.3f} times the schedule's words",
                   peak, worst_belady),
       worst_belady <= 1 ? Outcome::reproduced : Outcome::not_reproduced});
  findings.claims.push_back(
      {"a hardware cache does as well as explicit control", "Sleator and Tarjan 1985",
       fmt::format("LRU of exactly the peak reads {:.1f} times the words; it reads no more from "
                   "{:.2f} times the peak on",
                   lru_at_peak, lru_equal_from),
       lru_at_peak <= 1     ? Outcome::reproduced
       : lru_equal_from > 0 ? Outcome::corrected
                            : Outcome::not_reproduced});
  findings.plots.push_back(std::move(plot));
  return findings;
}

}  // namespace

Experiment caches_experiment() {
  return {"caches", "caches against explicit control", {"seqlen", "head-dim"}, run};
}

}  // namespace attest::certify
