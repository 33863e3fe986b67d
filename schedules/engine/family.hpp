#pragma once

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.hpp"
#include "core/text/suggest.hpp"
#include "cpu/kernels/machine/native_machine.hpp"
#include "io/machine/counting_machine.hpp"
#include "io/machine/dry_machine.hpp"
#include "io/recording/recording_machine.hpp"
#include "io/schedule/schedule.hpp"
#include "schedules/engine/direction_of.hpp"
#include "schedules/engine/guarded_arguments.hpp"
#include "schedules/engine/parameter.hpp"
#include "schedules/engine/search.hpp"
#include "schedules/engine/trace.hpp"

/// From a schedule struct to io::ScheduleFamily. A schedule struct has
///
///   Head: ForwardHead, BackwardHead or LossHead; kDense, of a template over walks
///   static constexpr const char* kName, *kSummary
///   static std::vector<Parameter<S>> parameters()
///   optionally static constexpr const char* kSource, the paper and the algorithm it comes from
///   optionally static constexpr io::KernelClass kClass, what the bounds may take for granted
///   optionally kReadsSaved, of a backward that reads what its own forward left, and kNoSoftcap, of
///   one that stores P (direction_of.hpp)
///   run(machine, head), cost(head)
///   optionally static void choose(schedule&, value of `rule`, problem, fast words)
///   optionally prepare(problem), what it takes from the problem before its tiles are chosen
///   optionally arrange(problem), what it takes from the problem for the tiles that it has
///   optionally moves_whole_rows(problem), which its tiles decide (io::Schedule)
///   optionally static fit(schedule&, problem, fast words): chooses tiles left open itself, with
///   the mask but without its own pairs; or with these, with kFitsPattern
///   optionally kTradesTiles: the first of a pair of tiles stays, the second visits
///
/// Tiles left open are searched without the mask, but for these, then traded in pairs with it, up
/// to kMostListedPairs: more finely with kTradesTiles; else the larger one is taken to stay.
namespace attest::schedules {

template <class S>
class BoundSchedule : public io::Schedule {
 public:
  using Direction = DirectionOf<typename S::Head>;
  using Arguments = typename Direction::Arguments;

  BoundSchedule(const S& schedule, const attest_problem& problem,
                io::SlowGuard guard = io::default_guard())
      : schedule_(schedule), problem_(problem), guard_(guard) {}

  io::ScheduleSpec spec() const override {
    io::ScheduleSpec spec{S::kName, {}};
    for (const Parameter<S>& parameter : S::parameters()) {
      const std::int64_t value = schedule_.*parameter.member;
      if (value == 0 && parameter.print == Parameter<S>::Print::unless_first) continue;
      spec.parameters.emplace_back(parameter.name,
                                   parameter.choices.empty()
                                       ? std::to_string(value)
                                       : parameter.choices[static_cast<std::size_t>(value)]);
    }
    return spec;
  }

  bool moves_whole_rows() const override {
    if constexpr (requires { schedule_.moves_whole_rows(problem_); }) {
      return schedule_.moves_whole_rows(problem_);
    }
    return false;
  }

  // Once: it may look at every pair of a mask.
  io::Traffic closed_form() const override {
    std::call_once(counted_, [this] { traffic_ = heads_cost(schedule_, problem_); });
    return traffic_;
  }

  io::Meter dry_count(io::FastMemory capacity) const override {
    io::DryMachine machine(capacity);
    Arguments args{};
    args.problem = &problem_;
    run_heads(machine, schedule_, args);
    return machine.meter();
  }

  using io::Schedule::count;
  io::Meter count(io::FastMemory capacity, const Arguments& args) const override {
    io::CountingMachine machine(capacity, guard_);
    const GuardedArguments<Arguments> guarded(args, guard_);
    run_heads(machine, schedule_, guarded.get());
    guarded.copy_back();
    return machine.meter();
  }

  io::Meter record(io::FastMemory capacity, io::WordMoveSink& sink) const override {
    require_one_head(problem_);
    io::RecordingMachine machine(capacity, sink);
    Arguments args{};
    args.problem = &problem_;
    run_heads(machine, schedule_, args);
    machine.backend().require_streams_used();
    return machine.meter();
  }

  using io::Schedule::run;
  void run(const Arguments& args) const override {
    const attest_problem& problem = *args.problem;
    const std::int64_t words = closed_form().peak.words.value();
    const std::int64_t count = Direction::count(problem), heads = problem.batch * count;
    const std::int32_t threads = std::max(problem.num_threads, 1);
    // Whole heads on each thread where there are enough, else the blocks of one head after another.
    const bool whole_heads = threads > 1 && heads >= threads;
    const auto one_head = [&](std::int64_t index) {
      cpu::NativeMachine machine(words, whole_heads ? 1 : threads);
      Direction::run_head(machine, schedule_, args, {index / count, index % count});
    };
    cpu::on_threads(heads, whole_heads ? threads : 1, one_head);
  }

 private:
  S schedule_;
  const attest_problem& problem_;
  io::SlowGuard guard_;
  mutable std::once_flag counted_;
  mutable io::Traffic traffic_;
};

/// A whole number, or nothing.
inline std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class S>
class Family : public io::ScheduleFamily {
 public:
  using Direction = DirectionOf<typename S::Head>;

  std::string name() const override { return S::kName; }
  std::string summary() const override { return S::kSummary; }
  std::string source() const override {
    if constexpr (requires { S::kSource; }) return S::kSource;
    return io::ScheduleFamily::source();
  }
  io::KernelClass kernel_class() const override {
    if constexpr (requires { S::kClass; }) return S::kClass;
    return {};
  }
  attest::Direction direction() const override { return Direction::kDirection; }

  std::vector<io::ScheduleParameter> parameters() const override {
    std::vector<io::ScheduleParameter> list;
    for (const Parameter<S>& parameter : S::parameters()) {
      list.push_back(
          {parameter.name, {parameter.choices.begin(), parameter.choices.end()}, parameter.search});
    }
    if constexpr (kHasRule) list.push_back({"rule", {S::kRules.begin(), S::kRules.end()}, {}});
    return list;
  }

  std::unique_ptr<io::Schedule> make(const io::ScheduleSpec& spec, const attest_problem& problem,
                                     io::FastMemory capacity) const override {
    return made(spec, problem, capacity, Trade::with_mask);
  }

 protected:
  static constexpr bool kFitsPattern = requires { S::kFitsPattern; };

  // Trading of tiles left open, after the search without the mask: with the mask, or none.
  enum class Trade : std::uint8_t { with_mask, none };

  std::unique_ptr<io::Schedule> made(const io::ScheduleSpec& spec, const attest_problem& problem,
                                     io::FastMemory capacity, Trade trade) const {
    require_countable_by<S>(problem);
    S schedule{};
    std::string rule;
    for (const auto& [key, value] : spec.parameters) {
      if (kHasRule && key == "rule") {
        rule = value;
      } else {
        set(schedule, key, value);
      }
    }
    if constexpr (requires { schedule.prepare(problem); }) schedule.prepare(problem);
    if constexpr (kHasRule) {
      if (!rule.empty()) S::choose(schedule, rule, problem, capacity);
    }
    fill(schedule, problem, capacity, trade);
    return std::make_unique<BoundSchedule<S>>(schedule, problem);
  }

 private:
  static constexpr bool kHasRule = requires(S & schedule, const attest_problem& problem) {
    S::choose(schedule, std::string(), problem, io::FastMemory{});
  };

  std::vector<std::string> parameter_names() const {
    std::vector<std::string> names;
    for (const io::ScheduleParameter& parameter : parameters()) names.push_back(parameter.name);
    return names;
  }

  static std::string listed(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += " " + word;
    return text;
  }

  void set(S& schedule, const std::string& key, const std::string& value) const {
    const auto& known = S::parameters();
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const auto& parameter) { return key == parameter.name; });
    if (found == known.end()) {
      throw InvalidProblem("schedule: " + name() + " has no parameter '" + key + "'" +
                           did_you_mean(key, parameter_names()) +
                           " (parameters:" + listed(parameter_names()) + ")");
    }
    if (found->choices.empty()) {
      const auto number = whole_number(value);
      if (!number || *number < 1) {
        throw InvalidProblem("schedule: " + name() + ": " + key + "=" + value +
                             ", but a tile needs a whole number from 1 to " +
                             std::to_string(std::numeric_limits<std::int64_t>::max()));
      }
      schedule.*found->member = *number;
      return;
    }
    for (std::size_t choice = 0; choice < found->choices.size(); ++choice) {
      if (value == found->choices[choice]) {
        schedule.*found->member = static_cast<std::int64_t>(choice);
        return;
      }
    }
    throw InvalidProblem("schedule: " + name() + ": " + key + "=" + value + " is unknown" +
                         did_you_mean(value, {found->choices.begin(), found->choices.end()}) +
                         " (choices:" + listed({found->choices.begin(), found->choices.end()}) +
                         ")");
  }

  // Chooses the tiles that are still 0 and checks that the whole fits. The search leaves the mask
  // or its band out: what fits without it fits with it.
  void fill(S& schedule, const attest_problem& problem, io::FastMemory capacity,
            Trade trade) const {
    attest_problem plain = problem;
    if (!kFitsPattern) plain.mask.boolean = nullptr;
    bool complete = true, some = false;
    for (const Parameter<S>& parameter : S::parameters()) {
      complete = complete && (!parameter.choices.empty() || schedule.*parameter.member != 0);
      some = some || (parameter.choices.empty() && schedule.*parameter.member != 0);
    }
    if constexpr (requires { S::fit(schedule, plain, capacity); }) {
      S::fit(schedule, plain, capacity);
    } else {
      plain.mask.window_left = plain.mask.window_right = -1;
    }
    constexpr bool kTrades = requires { S::kTradesTiles; };
    if (kTrades) plain.mask.key_lengths = nullptr;  // its words without a mask are quick to tell
    const bool listed = io::Words(problem.seqlen_q) * problem.seqlen_k <= kMostListedPairs;
    std::vector<OpenTile> tiles, open;
    for (const Parameter<S>& parameter : S::parameters()) {
      if (!parameter.choices.empty()) continue;
      std::int64_t& value = schedule.*parameter.member;
      tiles.push_back({&value, extent_of(problem, parameter.extent), value == 0});
      if (value != 0) continue;
      value = 1;
      // Nobody waits with a mask that is not listed: no tile for those who would.
      const bool visitors = kTrades && tiles.size() % 2 == 0;
      if (!visitors || listed || !has_mask(problem)) open.push_back(tiles.back());
    }
    if (open.empty()) arrange(schedule, problem);
    // Tiles of a pattern that go with some are not always the least at 1.
    const Given given = complete ? Given::all : some && kFitsPattern ? Given::some : Given::none;
    require_fit(schedule, open.empty() ? problem : plain, capacity, given);
    if (open.empty()) return;
    const auto cost = [&] { return heads_cost(schedule, plain); };
    search_tiles(open, capacity, cost);
    arrange(schedule, problem);
    const bool trades = trade == Trade::with_mask && (kTrades || has_mask(problem));
    constexpr std::int64_t kSteps = kTrades ? 32 : 8;
    for (std::size_t pair = 0; trades && listed && pair + 1 < tiles.size(); pair += 2) {
      if (!tiles[pair].open || !tiles[pair + 1].open) continue;
      const TilePair before{*tiles[pair].value, *tiles[pair + 1].value};
      const std::size_t stays = !kTrades && before.second > before.first ? 1 : 0;
      auto tried = trade_tiles(tiles[pair + stays], tiles[pair + 1 - stays], capacity, kSteps, cost,
                               [&] { return heads_cost(schedule, problem); });
      if (!kTrades) continue;
      // The only pair whose words are already those of its own order.
      tried.insert(tried.begin(), before);
      if (tiles.size() == 2) arrange_best(schedule, problem, capacity, tiles, tried);
    }
    arrange(schedule, problem);
  }

  // Chooses, of the tiles that are best with rows arranged for others, those best with their own.
  // The largest that stay are tried in any case: orders with gaps are for these.
  static void arrange_best(S& schedule, const attest_problem& problem, io::FastMemory capacity,
                           const std::vector<OpenTile>& tiles, const std::vector<TilePair>& tried) {
    constexpr std::size_t kTried = 8;
    if constexpr (requires { schedule.arrange(problem); }) {
      const auto set = [&](const TilePair& pair) {
        std::tie(*tiles[0].value, *tiles[1].value) = pair;
      };
      std::vector<TilePair> arranged(
          tried.begin(),
          tried.begin() + static_cast<std::ptrdiff_t>(std::min(kTried, tried.size())));
      const TilePair largest = *std::max_element(tried.begin(), tried.end());
      if (std::find(arranged.begin(), arranged.end(), largest) == arranged.end()) {
        arranged.push_back(largest);
      }
      TilePair best = tried.front();
      std::optional<io::Words> least;
      for (const TilePair& pair : arranged) {
        set(pair);
        schedule.arrange(problem);
        const io::Words words = moved(heads_cost(schedule, problem), capacity);
        if (least && words >= *least) continue;
        least = words;
        best = pair;
      }
      set(best);
    }
  }

  static void arrange(S& schedule, const attest_problem& problem) {
    if constexpr (requires { schedule.arrange(problem); }) schedule.arrange(problem);
  }

  static bool has_mask(const attest_problem& problem) {
    const attest_mask& mask = problem.mask;
    return mask.boolean != nullptr || mask.window_left >= 0 || mask.window_right >= 0 ||
           mask.key_lengths != nullptr;
  }

  // Which of the tiles were not left open.
  enum class Given : std::uint8_t { none, some, all };

  void require_fit(const S& schedule, const attest_problem& problem, io::FastMemory capacity,
                   Given given) const {
    const io::Amount peak = heads_cost(schedule, problem).peak;
    if (fits(peak, capacity)) return;
    const bool words = peak.words > capacity.words;
    S least = schedule;
    for (const Parameter<S>& parameter : S::parameters()) {
      if (parameter.choices.empty()) least.*parameter.member = 1;
    }
    const bool smaller_fit =
        given == Given::some ||
        (given == Given::all && fits(heads_cost(least, problem).peak, capacity));
    throw io::CapacityExceeded(std::string(words ? "fast_words: " : "fast_bytes: ") +
                               std::to_string(words ? capacity.words : capacity.bytes) + ", but " +
                               BoundSchedule<S>(schedule, problem).spec().to_string() + " needs " +
                               std::to_string((words ? peak.words : peak.bytes).value()) +
                               (smaller_fit           ? "; give more or smaller tiles"
                                : given == Given::all ? "; no tiles fit, give more"
                                                      : ", the least that works; give more"));
  }
};

}  // namespace attest::schedules
