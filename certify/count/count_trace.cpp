#include "certify/count/count_trace.hpp"

#include <ostream>

#include "certify/files.hpp"
#include "core/error.hpp"
#include "io/recording/trace_text.hpp"
#include "io/replay/accesses.hpp"

namespace attest::certify {
namespace {

// Hands moves on to those who want them.
class Recorder : public io::WordMoveSink {
 public:
  Recorder(std::int64_t most, std::vector<io::WordMoveSink*> sinks)
      : most_(most), sinks_(std::move(sinks)) {}

  void take(const io::WordMove& move) override {
    // Tiles free their places as they die, while an exception passes too: no throw for that.
    if (move.kind != io::WordMove::Kind::free && ++moves_ > most_) {
      throw InvalidProblem("trace: more than " + std::to_string(most_) +
                           " moves; make the problem smaller");
    }
    for (io::WordMoveSink* sink : sinks_) sink->take(move);
  }

 private:
  std::int64_t most_, moves_ = 0;
  std::vector<io::WordMoveSink*> sinks_;
};

void record(const io::Schedule& schedule, io::FastMemory capacity, std::int64_t most,
            std::vector<io::WordMoveSink*> sinks) {
  Recorder recorder(most, std::move(sinks));
  if (schedule.record(capacity, recorder).traffic() == schedule.closed_form()) return;
  throw InternalError("trace: the recorded run moves other words than are counted");
}

}  // namespace

std::vector<Replayed> record_schedule(const io::Schedule& schedule, const Problem& problem,
                                      io::FastMemory capacity, const TraceOptions& options) {
  std::vector<Replayed> replays;
  if (options.file.empty() && options.caches.empty()) return replays;
  io::AccessBuilder accesses(static_cast<std::size_t>(options.most_moves));
  std::vector<io::WordMoveSink*> sinks;
  if (!options.caches.empty()) sinks.push_back(&accesses);
  if (options.file.empty()) {
    record(schedule, capacity, options.most_moves, sinks);
  } else {
    write_file(options.file, [&](std::ostream& file) {
      file << "attest-trace-1\nschedule " << schedule.spec().to_string() << "\nproblem "
           << problem.to_string() << '\n';
      io::WordMoveWriter writer(file);
      sinks.push_back(&writer);
      record(schedule, capacity, options.most_moves, sinks);
    });
  }
  const io::AccessTrace trace = std::move(accesses).finish();
  for (const io::CacheSpec& cache : options.caches) {
    replays.push_back({cache, io::replay(trace, cache)});
  }
  return replays;
}

}  // namespace attest::certify
