#include "sparse/inputs/schedules/input_schedules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <map>

#include "core/error.hpp"
#include "core/text/suggest.hpp"
#include "io/machine/dry_machine.hpp"
#include "sparse/inputs/schedules/sparse_flash.hpp"
#include "sparse/inputs/schedules/sparse_flash_backward.hpp"
#include "sparse/inputs/schedules/stored_support.hpp"
#include "sparse/inputs/schedules/stored_support_backward.hpp"
#include "sparse/inputs/words/lower_bounds.hpp"
#include "sparse/inputs/words/tile_words.hpp"

namespace attest::sparse {
namespace {

using Tiles = std::vector<std::int64_t>;

io::KernelClass class_with(io::Evaluation evaluation) {
  io::KernelClass kernel;
  kernel.evaluation = evaluation;
  return kernel;
}

std::vector<float> zeros(std::int64_t rows, std::int64_t columns) {
  return std::vector<float>(static_cast<std::size_t>(rows * columns));
}

// Returns zeros for what a forward pass would have stored: words do not depend on the values.
Outputs nothing_stored(const SparseOperands& in) {
  return {zeros(in.Q.rows, in.V.columns), zeros(in.Q.rows, 1)};
}

template <class Schedule, class Task>
io::Meter dry_run(const Schedule& schedule, const Task& task, io::FastMemory capacity) {
  io::DryMachine machine(capacity);
  schedule.run(machine, task);
  return machine.meter();
}

// A schedule with tiles in the order of its parameters.
struct Family {
  InputSchedule known;
  io::Evaluation evaluation;
  std::function<io::Traffic(const Tiles&, const SparseOperands&, const EntrySums& support)> cost;
  std::function<io::Meter(const Tiles&, const SparseOperands&, io::FastMemory)> run;
};

SparseFlash flash_of(const Tiles& t) { return {t[0], t[1]}; }
StoredSupport stored_of(const Tiles& t) { return {t[0], t[1], t[2]}; }
SparseFlashBackward flash_bwd_of(const Tiles& t) { return {t[0], t[1], t[2], t[3], t[4]}; }
StoredSupportBackward stored_bwd_of(const Tiles& t) { return {t[0], t[1], t[2], t[3]}; }

// The closed forms of the schedules that store the support ask for its pairs, block by block.
template <class Make>
auto cost_of(const Make& make) {
  return [make](const Tiles& tiles, const SparseOperands& in, const EntrySums& support) {
    if constexpr (requires { make(tiles).cost(in, support); }) {
      return make(tiles).cost(in, support);
    } else {
      return make(tiles).cost(in);
    }
  };
}

const std::vector<Family>& families() {
  static const std::vector<Family> all{
      {{"sparse_flash",
        Direction::forward,
        {"bq", "bk"},
        "O stays, K and V pass by",
        "after Dao 2023, Algorithm 1"},
       io::Evaluation::once,
       cost_of(flash_of),
       [](const Tiles& tiles, const SparseOperands& in, io::FastMemory capacity) {
         return dry_run(flash_of(tiles), AttentionStore(in).slow(), capacity);
       }},
      {{"stored_support",
        Direction::forward,
        {"bq", "bk", "bv"},
        "scores by outer products, stored; then O in tiles",
        "after Li et al. 2024, theorem 4.5, small cache"},
       io::Evaluation::once,
       cost_of(stored_of),
       [](const Tiles& tiles, const SparseOperands& in, io::FastMemory capacity) {
         SupportStore store(in, stored_of(tiles));
         return dry_run(stored_of(tiles), store.slow(), capacity);
       }},
      {{"sparse_flash_bwd",
        Direction::backward,
        {"bq", "bk", "pq", "pk", "bv"},
        "dQ stays, then dK and dV stay; scores formed twice",
        "after Dao 2023, Algorithm 2"},
       io::Evaluation::may_recompute,
       cost_of(flash_bwd_of),
       [](const Tiles& tiles, const SparseOperands& in, io::FastMemory capacity) {
         const auto dO = zeros(in.Q.rows, in.V.columns);
         GradientStore store(in, dO, nothing_stored(in));
         return dry_run(flash_bwd_of(tiles), store.slow(), capacity);
       }},
      {{"stored_support_bwd",
        Direction::backward,
        {"bq", "bk", "bv", "bd"},
        "weights and dS of the support stored; then gradients in tiles",
        "after Li et al. 2024, theorem 4.5, small cache"},
       io::Evaluation::once,
       cost_of(stored_bwd_of),
       [](const Tiles& tiles, const SparseOperands& in, io::FastMemory capacity) {
         const auto dO = zeros(in.Q.rows, in.V.columns);
         SupportGradientStore store(in, dO, nothing_stored(in), stored_bwd_of(tiles));
         return dry_run(stored_bwd_of(tiles), store.slow(), capacity);
       }}};
  return all;
}

const Family& family_of(const std::string& name) {
  std::vector<std::string> names;
  for (const Family& family : families()) {
    if (family.known.name == name) return family;
    names.push_back(family.known.name);
  }
  throw InvalidProblem(fmt::format("schedule '{}' is not one of sparse inputs{} ({})", name,
                                   did_you_mean(name, names), fmt::join(names, ", ")));
}

Tiles sides_of(const std::string& parameter, const SparseOperands& in, int to_an_octave) {
  constexpr std::int64_t kLeastSide = 4;
  const std::int64_t extent = parameter == "bq" || parameter == "pq"   ? in.Q.rows
                              : parameter == "bk" || parameter == "pk" ? in.K.rows
                              : parameter == "bv"                      ? in.V.columns
                                                                       : in.Q.columns;
  return tile_sides(extent, kLeastSide, to_an_octave);
}

io::ScheduleSpec spec_of(const Family& family, const Tiles& tiles) {
  io::ScheduleSpec spec{family.known.name, {}};
  for (std::size_t n = 0; n < tiles.size(); ++n) {
    spec.parameters.emplace_back(family.known.parameters[n], std::to_string(tiles[n]));
  }
  return spec;
}

// Tiles given, 0 where open.
Tiles given_tiles(const Family& family, const io::ScheduleSpec& spec) {
  const auto& names = family.known.parameters;
  Tiles tiles(names.size());
  for (const auto& [key, text] : spec.parameters) {
    const auto found = std::find(names.begin(), names.end(), key);
    if (found == names.end()) {
      throw InvalidProblem(
          fmt::format("{}: '{}' is unknown ({})", spec.name, key, fmt::join(names, ", ")));
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 1) {
      throw InvalidProblem(
          fmt::format("{}: {}={} is no tile; give a whole number from 1", spec.name, key, text));
    }
    tiles[static_cast<std::size_t>(found - names.begin())] = value;
  }
  return tiles;
}

// All tiles of the grid that agree with those given.
std::vector<InputWords::Choice> choices_of(const Family& family, const SparseOperands& in,
                                           const EntrySums& support, const Tiles& given,
                                           int to_an_octave) {
  std::vector<Tiles> all{{}};
  for (std::size_t n = 0; n < given.size(); ++n) {
    const std::string& parameter = family.known.parameters[n];
    std::vector<Tiles> longer;
    for (const Tiles& tiles : all) {
      // The passes of sparse_flash_bwd have blocks of the same sides.
      const Tiles open = parameter == "pq" && given[0] == 0 ? Tiles{tiles[1]}
                         : parameter == "pk" && given[1] == 0
                             ? Tiles{tiles[0]}
                             : sides_of(parameter, in, to_an_octave);
      for (const std::int64_t side : given[n] != 0 ? Tiles{given[n]} : open) {
        longer.push_back(tiles);
        longer.back().push_back(side);
      }
    }
    all = std::move(longer);
  }
  std::vector<InputWords::Choice> choices;
  choices.reserve(all.size());
  for (const Tiles& tiles : all) {
    choices.push_back({spec_of(family, tiles), family.cost(tiles, in, support)});
  }
  return choices;
}

bool fits(const io::Traffic& traffic, io::FastMemory capacity) {
  return traffic.peak.words <= capacity.words && traffic.peak.bytes <= capacity.bytes;
}

const InputWords::Choice* fewest_of(const std::vector<InputWords::Choice>& choices,
                                    io::FastMemory capacity) {
  const InputWords::Choice* best = nullptr;
  for (const InputWords::Choice& choice : choices) {
    if (!fits(choice.traffic, capacity)) continue;
    if (best == nullptr || choice.traffic.total_words() < best->traffic.total_words()) {
      best = &choice;
    }
  }
  return best;
}

std::int64_t least_memory_of(const std::vector<InputWords::Choice>& choices) {
  io::Words least = choices.front().traffic.peak.words;
  for (const auto& choice : choices) least = std::min(least, choice.traffic.peak.words);
  return least.value();
}

std::string too_small(const std::string& name, std::int64_t least) {
  return fmt::format("fast_words: {} needs {}, the least of the tiles tried; give more", name,
                     least);
}

io::BestSchedule best_of(const InputWords& words, Direction direction, io::FastMemory capacity) {
  io::BestSchedule best;
  for (const Family& family : families()) {
    if (family.known.direction != direction) continue;
    const std::string& name = family.known.name;
    const InputWords::Choice* choice = words.fewest(name, capacity);
    if (choice != nullptr) {
      best.candidates.push_back({choice->spec.to_string(), choice->traffic, "", {}});
    } else {
      best.candidates.push_back({name, {}, too_small(name, words.least_memory(name)), {}});
    }
  }
  std::stable_sort(best.candidates.begin(), best.candidates.end(),
                   [](const io::Candidate& a, const io::Candidate& b) {
                     if (a.refusal.empty() != b.refusal.empty()) return a.refusal.empty();
                     return a.traffic.total_words() < b.traffic.total_words();
                   });
  return best;
}

std::vector<io::Bound> bounds_of(Direction direction, const SparseOperands& operands,
                                 const io::KernelClass& kernel, std::int64_t fast_words) {
  return direction == Direction::forward ? lower_bounds(operands, kernel, fast_words)
                                         : backward_lower_bounds(operands, kernel, fast_words);
}

}  // namespace

const std::vector<InputSchedule>& input_schedules() {
  static const std::vector<InputSchedule> all = [] {
    std::vector<InputSchedule> known;
    for (const Family& family : families()) known.push_back(family.known);
    return known;
  }();
  return all;
}

InputWords::InputWords(const SparseOperands& operands, Direction direction, int to_an_octave) {
  operands.validate();
  const EntrySums support(product_structure(operands.Q, operands.K));
  for (const Family& family : families()) {
    if (family.known.direction != direction) continue;
    const Tiles open(family.known.parameters.size());
    all_.emplace_back(family.known.name, choices_of(family, operands, support, open, to_an_octave));
  }
}

const std::vector<InputWords::Choice>& InputWords::choices(const std::string& name) const {
  for (const auto& [known, choices] : all_) {
    if (known == name) return choices;
  }
  throw InvalidProblem("schedule '" + name + "' is not one of sparse inputs in this direction");
}

const InputWords::Choice* InputWords::fewest(const std::string& name,
                                             io::FastMemory capacity) const {
  return fewest_of(choices(name), capacity);
}

std::int64_t InputWords::least_memory(const std::string& name) const {
  return least_memory_of(choices(name));
}

InputCount count_sparse_inputs(const io::ScheduleSpec& spec, const SparseOperands& operands,
                               io::FastMemory capacity) {
  operands.validate();
  const Family& family = family_of(spec.name);
  const Tiles given = given_tiles(family, spec);
  const InputWords words(operands, family.known.direction);
  std::vector<InputWords::Choice> with_given;
  if (!spec.parameters.empty()) {
    const EntrySums support(product_structure(operands.Q, operands.K));
    with_given = choices_of(family, operands, support, given, 1);
  }
  const auto& choices = spec.parameters.empty() ? words.choices(spec.name) : with_given;
  const InputWords::Choice* chosen = fewest_of(choices, capacity);
  if (chosen == nullptr) throw InvalidProblem(too_small(spec.name, least_memory_of(choices)));
  InputCount result;
  io::ScheduleCount& count = result.count;
  count.schedule = chosen->spec.to_string();
  count.direction = family.known.direction;
  count.capacity = capacity;
  count.bound_words = capacity.words != io::FastMemory::kUnlimited
                          ? capacity.words
                          : io::words_of_bytes(capacity.bytes, count.narrowest_bytes);
  const io::Meter meter = family.run(given_tiles(family, chosen->spec), operands, capacity);
  count.counted = meter.traffic();
  count.blocks = meter.blocks();
  count.closed_form = chosen->traffic;
  count.kernel = class_on(operands, class_with(family.evaluation));
  count.bounds = bounds_of(count.direction, operands, count.kernel, count.bound_words);
  count.lower = io::greatest(count.bounds);
  count.lower_of_every = io::greatest(
      bounds_of(count.direction, operands, io::undeclared(count.kernel), count.bound_words));
  result.best = best_of(words, count.direction, capacity);
  return result;
}

}  // namespace attest::sparse
