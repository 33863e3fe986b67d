#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "certify/campaign/host.hpp"
#include "certify/cli/commands.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/files.hpp"
#include "certify/printable.hpp"
#include "certify/reproduce/page.hpp"
#include "certify/reproduce/plot.hpp"
#include "core/error.hpp"
#include "core/text/suggest.hpp"

namespace attest::certify::cli {
namespace {

namespace fs = std::filesystem;

struct ReproduceOptions {
  std::vector<std::string> names;
  std::string tier = "fast", folder = "out/reproduce";
  std::optional<std::int64_t> seqlen, head_dim, fast_words;
  bool json = false;
};

Effort effort_of(const std::string& tier) {
  if (tier == "smoke") return Effort::smoke;
  if (tier == "fast") return Effort::fast;
  throw InvalidProblem("unknown tier '" + tier + "'" + did_you_mean(tier, {"smoke", "fast"}) +
                       " (smoke, fast)");
}

std::vector<const Experiment*> chosen_experiments(const std::vector<std::string>& names) {
  std::vector<const Experiment*> list;
  for (const std::string& name : names) {
    if (name == "all") {
      for (const Experiment& experiment : experiments()) list.push_back(&experiment);
    } else {
      list.push_back(&find_experiment(name));
    }
  }
  std::vector<const Experiment*> once;  // whatever was named twice
  for (const Experiment* experiment : list) {
    if (std::find(once.begin(), once.end(), experiment) == once.end()) once.push_back(experiment);
  }
  return once;
}

// A size that an experiment does not take would be ignored in silence.
void require_taken(const Experiment& experiment, const ReproduceOptions& options) {
  const auto require = [&](const char* name, const std::optional<std::int64_t>& given) {
    if (!given) return;
    std::string taken;
    for (const SizeOption& size : experiment.sizes) {
      taken += " --" + size.name;
      if (size.name != name) continue;
      const bool within = size.least <= *given && *given <= size.most;
      if (within && *given % size.multiple == 0) return;
      const std::string of =
          size.multiple > 1 ? fmt::format("multiples of {} from ", size.multiple) : "";
      throw InvalidProblem(fmt::format("{}: --{} {} is not among the {}{} to {} that it works with",
                                       experiment.name, name, *given, of, size.least, size.most));
    }
    throw InvalidProblem(
        experiment.name + " takes no --" + name +
        (taken.empty() ? std::string("; it has its own sizes") : " (it takes" + taken + ")"));
  };
  require("seqlen", options.seqlen);
  require("head-dim", options.head_dim);
  require("fast-words", options.fast_words);
}

std::string command_of(const Experiment& experiment, const ReproduceOptions& options) {
  std::string command = "attest reproduce " + experiment.name + " --tier " + options.tier;
  const auto add = [&](const char* size, const std::optional<std::int64_t>& given) {
    if (given) command += fmt::format(" --{} {}", size, *given);
  };
  add("seqlen", options.seqlen);
  add("head-dim", options.head_dim);
  add("fast-words", options.fast_words);
  return command;
}

// Removes the drawings of an earlier run, which would stand beside the new points.
void remove_drawings(const fs::path& folder, const Plot& plot) {
  std::error_code ignored;
  for (const char* suffix : {".svg", ".png"}) fs::remove(folder / (plot.name + suffix), ignored);
}

// Draws what can be drawn; why not, when gnuplot is absent or fails.
std::string draw_all(const std::vector<Reproduced>& results, const fs::path& folder,
                     std::map<std::string, std::string>& drawings) {
  for (const Reproduced& one : results) {
    for (const Plot& plot : one.findings.plots) {
      try {
        draw(plot, folder.string());
        drawings[plot.name] = inline_svg(read_file((folder / (plot.name + ".svg")).string()));
      } catch (const std::exception& error) {
        return error.what();
      }
    }
  }
  return "";
}

std::string outcome_text(Outcome outcome) {
  const std::string text = name(outcome);
  return outcome == Outcome::reproduced       ? good(text)
         : outcome == Outcome::not_reproduced ? bad(text)
                                              : warning(text);
}

void print(const Reproduced& one) {
  fmt::print("{}  {}\n", bold(one.name), one.title);
  for (const Claim& claim : one.findings.claims) {
    fmt::print("  {}: {} ({})\n    {}\n", outcome_text(claim.outcome), claim.text, claim.source,
               claim.measured);
  }
}

// Sizes given may leave an experiment nothing to count; its own never do.
Findings find(const Experiment& experiment, const Laboratory& laboratory) {
  try {
    return experiment.run(laboratory);
  } catch (const InvalidProblem& error) {
    if (!laboratory.seqlen && !laboratory.head_dim && !laboratory.fast_words) throw;
    throw InvalidProblem(experiment.name + " cannot work with these sizes: " + error.what() +
                         "; choose others, or none for its own");
  }
}

// Kernels and schedules that experiments work with.
struct Subjects {
  const Registry& kernels;
  const io::ScheduleRegistry& schedules;
};

Reproduced carry_out(const Experiment& experiment, const Subjects& subjects,
                     const ReproduceOptions& options) {
  const ElapsedLine elapsed(experiment.name);
  const auto begin = std::chrono::steady_clock::now();
  Reproduced one{experiment.name, experiment.title, command_of(experiment, options), 0, {}};
  one.findings = find(experiment, {subjects.schedules, subjects.kernels, effort_of(options.tier),
                                   options.seqlen, options.head_dim, options.fast_words});
  one.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return one;
}

// Tells what made the page, on what, in which time.
std::string about(const nlohmann::json& object, const std::vector<Reproduced>& results) {
  double seconds = 0;
  for (const Reproduced& one : results) seconds += one.seconds;
  return fmt::format("Attest {} on {}, {:.0f} s", object.at("version").get<std::string>(),
                     object.at("host").value("processor", "a processor without a name"), seconds);
}

int reproduce(const Subjects& subjects, const ReproduceOptions& options) {
  effort_of(options.tier);
  const std::vector<const Experiment*> list = chosen_experiments(options.names);
  if (list.empty()) {
    throw InvalidProblem("no experiment given; pass names (attest list experiments) or all");
  }
  for (const Experiment* experiment : list) require_taken(*experiment, options);
  const fs::path folder = options.folder;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw InvalidProblem("--out " + options.folder + ": " + error.message());
  std::vector<Reproduced> results;
  for (const Experiment* experiment : list) {
    results.push_back(carry_out(*experiment, subjects, options));
    if (!options.json) print(results.back());
    for (const Plot& plot : results.back().findings.plots) {
      remove_drawings(folder, plot);
      write_file((folder / (plot.name + ".csv")).string(), csv(plot));
    }
    for (const Table& table : results.back().findings.tables) {
      write_file((folder / (table.name + ".csv")).string(), csv(table));
    }
  }
  nlohmann::json object = reproduce_json(results);
  object["version"] = version();
  object["host"] = host_json();
  write_file((folder / "reproduce.json").string(), json_text(object) + "\n");
  std::map<std::string, std::string> drawings;
  const std::string undrawn = draw_all(results, folder, drawings);
  write_file((folder / "index.html").string(),
             reproduce_page(results, drawings, about(object, results)));
  if (options.json) {
    fmt::print("{}\n", json_text(object));
  } else {
    fmt::print("page: {}\n", printable((folder / "index.html").string()));
  }
  if (!undrawn.empty()) fmt::print(stderr, "attest: no plots: {}\n", undrawn);
  return 0;
}

}  // namespace

void add_reproduce(CLI::App& app, const Registry& registry, const io::ScheduleRegistry& schedules,
                   Action& action) {
  CLI::App* command =
      app.add_subcommand("reproduce", "the claims of the I/O papers, counted: a page with plots");
  auto options = std::make_shared<ReproduceOptions>();
  constexpr std::uint64_t kMost = std::uint64_t{1} << 24;
  command->add_option("experiment", options->names,
                      "experiments (attest list experiments), or all");
  command->add_option("--tier", options->tier, "smoke (seconds) or fast (minutes), default fast");
  command->add_option("--seqlen", options->seqlen, "N, where the experiment takes it")
      ->check(whole_number(kMost));
  command->add_option("--head-dim", options->head_dim, "d, where the experiment takes it")
      ->check(whole_number(kMost));
  command->add_option("--fast-words", options->fast_words, "M, where the experiment takes it")
      ->check(whole_number(kMost));
  command->add_option("--out", options->folder, "folder of the page, default out/reproduce")
      ->check(not_empty());
  command->add_flag("--json", options->json, "as JSON (certify/schemas/reproduce.schema.json)");
  command->footer(
      "Writes index.html, reproduce.json and, for each plot, .csv .gp .svg .png (with gnuplot).\n"
      "Exit code 0 whatever the outcomes: a claim that is not reproduced is a finding too.\n"
      "Examples:\n"
      "  attest reproduce all --tier smoke\n"
      "  attest reproduce forward_io --seqlen 4096 --head-dim 128\n"
      "  attest reproduce tile_rules gpt2_traffic");
  command->callback([&registry, &schedules, &action, options] {
    action = [&registry, &schedules, options] {
      return reproduce({registry, schedules}, *options);
    };
  });
}

}  // namespace attest::certify::cli
