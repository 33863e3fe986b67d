#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "certify/campaign/host.hpp"
#include "certify/cli/commands.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/printable.hpp"
#include "certify/regime/regime_table.hpp"
#include "certify/regime/statements.hpp"
#include "core/error.hpp"
#include "core/mask/mask_shape.hpp"
#include "core/text/thousands.hpp"

namespace attest::certify::cli {
namespace {

struct RegimeOptions {
  std::vector<std::string> devices, models, dtypes;
  std::optional<std::int64_t> fast_bytes, head_dim, head_dim_v, seqlen;
  std::string direction, mask;
  bool json = false;
};

// Sizes alone are a table of all devices; what is named has its words predicted.
bool wants_predictions(const RegimeOptions& options) {
  return !options.devices.empty() || !options.models.empty() || options.fast_bytes ||
         options.head_dim;
}

std::vector<RegimePlace> places(const RegimeOptions& options) {
  if (!options.fast_bytes) return places_of(options.devices);
  if (!options.devices.empty()) {
    throw InvalidProblem("--fast-bytes and --device together; pass one of them");
  }
  return {{"", "", {"fast memory", "slow memory", "block", *options.fast_bytes}}};
}

// The sizes given, else those of a mask that fixes them.
std::string options_text(const RegimeOptions& options) {
  constexpr std::int64_t kSeqlen = 4096;
  const auto of_mask = options.mask.empty() ? std::nullopt : shape_of_mask(options.mask);
  if (of_mask && !options.seqlen)
    return fmt::format("sq={},sk={}", of_mask->rows, of_mask->columns);
  if (of_mask && *of_mask != PatternShape{*options.seqlen, *options.seqlen}) {
    throw InvalidProblem(
        fmt::format("--seqlen {}: the mask is {}x{}; leave --seqlen out, the mask "
                    "has its sizes",
                    *options.seqlen, of_mask->rows, of_mask->columns));
  }
  return fmt::format("sq={}", options.seqlen.value_or(kSeqlen));
}

std::vector<RegimeShape> models_of(const RegimeOptions& options) {
  if (!options.mask.empty() && options.models.empty()) {
    throw InvalidProblem("--mask needs --head-dim or --model, of which it is the mask");
  }
  std::vector<RegimeShape> shapes = shapes_of(options.models);
  if (options.mask.empty()) return shapes;
  for (RegimeShape& shape : shapes) {
    Problem& problem = shape.problem;
    if (problem.layout == Layout::thd) problem.layout = Layout::bshd;  // of its packed sequences
    problem.mask = Pattern::parse(options.mask, problem.seqlen_q, problem.seqlen_k);
    problem.validate();
  }
  return shapes;
}

std::vector<RegimeShape> shapes(const RegimeOptions& options) {
  if (!options.head_dim) {
    if (options.head_dim_v) throw InvalidProblem("--head-dim-v needs --head-dim");
    if (options.seqlen) throw InvalidProblem("--seqlen needs --head-dim; models have their own");
    return models_of(options);
  }
  if (!options.models.empty()) {
    throw InvalidProblem("--head-dim and --model together; pass one of them");
  }
  const std::int64_t head_dim_v = options.head_dim_v.value_or(*options.head_dim);
  if (options.seqlen.value_or(1) < 1) {
    throw InvalidProblem("--seqlen 0: without rows nothing moves; give 1 or more");
  }
  return {
      {"", "", io::Storage::disjoint,
       Problem::parse(fmt::format("{},d={},dv={},mask={}", options_text(options), *options.head_dim,
                                  head_dim_v, options.mask.empty() ? "none" : options.mask))}};
}

RegimeTable table_of(const RegimeOptions& options) {
  RegimeTable table;
  table.places = places(options);
  table.shapes = shapes(options);
  for (const std::string& dtype : options.dtypes) table.words.push_back(find_word_type(dtype));
  if (table.words.empty()) table.words = word_types();
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    if (options.direction.empty() || options.direction == name(direction)) {
      table.directions.push_back(direction);
    }
  }
  if (table.directions.empty()) {
    throw InvalidProblem("direction: '" + options.direction + "' is unknown (forward backward)");
  }
  if (wants_predictions(options)) return table;
  if (!options.direction.empty()) {
    throw InvalidProblem("--direction is for predictions; name a --device, a --model or sizes");
  }
  table.directions.clear();
  return table;
}

std::string ratio_text(const CacheSize& size) {
  const std::string text = size.ratio < 0.1    ? fmt::format("{:.2g}", size.ratio)
                           : size.ratio < 10   ? fmt::format("{:.2f}", size.ratio)
                           : size.ratio < 1000 ? fmt::format("{:.1f}", size.ratio)
                                               : thousands(std::llround(size.ratio));
  return size.regime == CacheRegime::small ? text + "*" : text;
}

std::string dims_text(const Problem& problem) {
  return fmt::format("{}/{}", problem.head_dim_qk, problem.head_dim_v);
}

std::string place_text(const RegimePlace& place) {
  const fixtures::Boundary& boundary = place.boundary;
  return fmt::format("{} <-> {}, {} bytes per {}", boundary.fast, boundary.slow,
                     thousands(boundary.fast_bytes), boundary.per);
}

// One shape for each pair of head dimensions, in ascending order.
std::vector<RegimeShape> distinct_dims(std::vector<RegimeShape> shapes) {
  const auto product = [](const RegimeShape& shape) {
    return shape.problem.head_dim_qk * shape.problem.head_dim_v;
  };
  std::stable_sort(shapes.begin(), shapes.end(),
                   [&](const auto& a, const auto& b) { return product(a) < product(b); });
  const auto same = [](const RegimeShape& a, const RegimeShape& b) {
    return dims_text(a.problem) == dims_text(b.problem);
  };
  shapes.erase(std::unique(shapes.begin(), shapes.end(), same), shapes.end());
  return shapes;
}

// The left column and the others, in characters.
constexpr int kPlace = 43, kRatio = 7;

void print_sizes(const RegimeTable& table) {
  const std::vector<RegimeShape> shapes = distinct_dims(table.shapes);
  fmt::print("{}; * small cache, M < d_k d_v\n", bold("M / (d_k d_v)"));
  std::string widths, dims;
  for (const WordType& word : table.words) {
    for (const RegimeShape& shape : shapes) {
      const std::string heading = &shape == &shapes.front() ? word.name : "";
      widths += fmt::format(" {:>{}}", heading, kRatio);
      dims += fmt::format(" {:>{}}", dims_text(shape.problem), kRatio);
    }
  }
  fmt::print("{:<{}}{}\n{:<{}}{}\n", "", kPlace, widths, "", kPlace, dims);
  std::string device;
  for (const RegimePlace& place : table.places) {
    if (place.device != device) fmt::print("{}\n", bold(place.device));
    device = place.device;
    std::string ratios;
    for (const WordType& word : table.words) {
      for (const RegimeShape& shape : shapes) {
        const Problem& problem = shape.problem;
        const CacheSize size =
            cache_size(place.boundary.fast_bytes, word, problem.head_dim_qk, problem.head_dim_v);
        ratios += fmt::format(" {:>{}}", ratio_text(size), kRatio);
      }
    }
    fmt::print("{:<{}}{}\n",
               fmt::format("  {}, {} KB", place.boundary.fast,
                           thousands(place.boundary.fast_bytes / 1024)),
               kPlace, ratios);
  }
}

// Prints what is said of some devices, or of all.
void print_statements(const std::vector<RegimePlace>& places) {
  const auto named = [&](const Figure& figure) {
    return std::any_of(places.begin(), places.end(),
                       [&](const RegimePlace& place) { return figure.device == place.device; });
  };
  for (const Statement& statement : statements()) {
    std::vector<Figure> chosen = figures(statement);
    if (!places.empty()) std::erase_if(chosen, [&](const auto& figure) { return !named(figure); });
    if (chosen.empty()) continue;
    fmt::print("\n{}: {}:\n  {}\n", bold("what is said"), statement.source, statement.text);
    for (const Figure& figure : chosen) {
      fmt::print("    {:<48} {:<4} {:>7}  M/(d_k d_v) {:>6}  {}\n", figure.place, figure.word,
                 fmt::format("{}/{}", figure.head_dim_qk, figure.head_dim_v),
                 ratio_text(figure.size),
                 figure.holds == Figure::Holds::yes ? good("so") : warning("not so"));
    }
  }
}

void print_prediction(const Prediction& prediction, const WordType& word) {
  const std::string_view direction = name(prediction.direction);
  if (!prediction.refusal.empty()) {
    // One schedule's reason stands for all: the first line names none yet.
    std::string why = prediction.refusal;
    const std::size_t first = why.find('\n');
    if (first != std::string::npos) why[first] = ' ';
    fmt::print("      {:<8} none: {}\n", direction, why.substr(0, why.find('\n')));
    return;
  }
  fmt::print("      {:<8} {:<38} {:>16} words {:>17} bytes", direction, prediction.schedule,
             thousands(prediction.words), thousands(prediction.words * word.bytes));
  if (prediction.ratio) {
    fmt::print("  {:.3f} times {}", *prediction.ratio, prediction.lower->name);
  }
  fmt::print("\n");
}

// The width is the row's, whatever the model has.
std::string without_dtype(const Problem& problem) {
  std::string text = problem.to_string();
  const std::size_t begin = text.find(",dtype=");
  return begin == std::string::npos ? text : text.erase(begin, text.find(',', begin + 1) - begin);
}

void print_rows(const std::vector<RegimeRow>& rows) {
  std::string place, shape;
  for (const RegimeRow& row : rows) {
    const std::string here = row.place.device + " " + place_text(row.place);
    if (here != place) {
      fmt::print("{}\n",
                 bold(row.place.device.empty() ? place_text(row.place)
                                               : row.place.device + "  " + place_text(row.place)));
      shape.clear();
    }
    place = here;
    const std::string problem = without_dtype(row.shape.problem);
    if (row.shape.model + problem != shape) {
      fmt::print("  {}{}\n", row.shape.model.empty() ? "" : row.shape.model + "  ", problem);
    }
    shape = row.shape.model + problem;
    fmt::print("    {:<4} M = {} words, M/(d_k d_v) = {}: {}\n", row.word.name,
               thousands(row.size.fast_words), ratio_text(row.size), name(row.size.regime));
    for (const Prediction& prediction : row.predictions) print_prediction(prediction, row.word);
  }
}

int regime(const io::ScheduleRegistry& schedules, const RegimeOptions& options) {
  const RegimeTable table = table_of(options);
  if (!options.json && !wants_predictions(options)) {
    print_sizes(table);
    print_statements({});
    fmt::print(
        "\nWith --device or --model: the best schedule at each boundary and the words it moves.\n");
    return 0;
  }
  ProgressLine progress("regime");
  const std::vector<RegimeRow> rows = regime_rows(
      schedules, table, [&](std::uint64_t done, std::uint64_t all) { progress.update(done, all); });
  progress.clear();
  if (options.json) {
    nlohmann::json object = regime_json(rows);
    object["version"] = version();
    fmt::print("{}\n", json_text(object));
  } else {
    print_rows(rows);
    if (!options.devices.empty() && options.models.empty()) print_statements(table.places);
  }
  return 0;
}

}  // namespace

void add_regime(CLI::App& app, const io::ScheduleRegistry& schedules, Action& action) {
  CLI::App* command = app.add_subcommand(
      "regime", "which devices and models are in the small-cache case, and what moves there");
  auto options = std::make_shared<RegimeOptions>();
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  command->add_option("--device", options->devices, "devices (attest list devices), default all");
  command->add_option("--model", options->models, "models (attest list models), default all");
  command->add_option("--dtype", options->dtypes, "widths of a word: f32, bf16, fp8; default all");
  command
      ->add_option("--fast-bytes", options->fast_bytes, "instead of a device: bytes of fast memory")
      ->check(whole_number(kMost));
  command->add_option("--head-dim", options->head_dim, "instead of a model: head dimension d_k")
      ->check(whole_number(kMost));
  command->add_option("--head-dim-v", options->head_dim_v, "d_v, default d_k")
      ->check(whole_number(kMost));
  command->add_option("--seqlen", options->seqlen, "with --head-dim: sequence length, default 4096")
      ->check(whole_number(kMost));
  command
      ->add_option("--mask", options->mask,
                   "with --head-dim or --model: the mask (docs/how-to/masks.md; file_PATH, "
                   "pattern_PATH) whose words, bounds and best schedule are asked for")
      ->check(not_empty());
  command->add_option("--direction", options->direction, "forward or backward, default both");
  command->add_flag("--json", options->json, "as JSON (certify/schemas/regime.schema.json)");
  command->footer(
      "M is the fast memory in words: at a GPU's first boundary registers count (condition K1 of\n"
      "the bounds). Words are those of the best schedule known here, every word of one width;\n"
      "query heads that share K and V count as rows of one head where no mask tells them apart.\n"
      "Examples:\n"
      "  attest regime\n"
      "  attest regime --device h100 --model deepseek-v3-latent --dtype bf16\n"
      "  attest regime --fast-bytes 49152 --head-dim 128 --dtype f32\n"
      "  attest regime --fast-bytes 16384 --head-dim 64 --mask block_64_10_7 --dtype f32");
  command->callback([&schedules, &action, options] {
    action = [&schedules, options] { return regime(schedules, *options); };
  });
}

}  // namespace attest::certify::cli
