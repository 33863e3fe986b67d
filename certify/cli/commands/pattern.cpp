#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "certify/campaign/host.hpp"
#include "certify/cli/commands.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/files.hpp"
#include "certify/pattern/summary.hpp"
#include "certify/printable.hpp"
#include "core/error.hpp"
#include "core/mask/mask_shape.hpp"
#include "core/text/thousands.hpp"

namespace attest::certify::cli {
namespace {

struct PatternOptions {
  std::string mask, out;
  std::optional<std::int64_t> seqlen, seqlen_k;
  bool json = false;
};

// One head that sees the mask, of the sizes given, else those that the mask fixes.
Problem problem_of(const PatternOptions& options) {
  const auto fixed = shape_of_mask(options.mask);
  const bool packed = Pattern::parse_packed(options.mask).packed();
  if (options.seqlen_k && !options.seqlen) {
    throw InvalidProblem("--seqlen-k without --seqlen; pass the number of queries too");
  }
  if (!options.seqlen && !fixed && !packed) {
    throw InvalidProblem("mask '" + options.mask + "' has no sizes of its own; pass --seqlen N");
  }
  if (packed && options.seqlen) {
    throw InvalidProblem("--seqlen with packed sequences, which have their own; leave it out");
  }
  if (packed) return Problem::parse("d=1,mask=" + options.mask);
  Problem problem;
  problem.seqlen_q = options.seqlen ? *options.seqlen : fixed->rows;
  problem.seqlen_k = options.seqlen ? options.seqlen_k.value_or(*options.seqlen) : fixed->columns;
  problem.mask = Pattern::parse(options.mask, problem.seqlen_q, problem.seqlen_k);
  problem.batch = std::max<std::int64_t>(1, std::ssize(problem.mask.key_lengths));
  problem.validate();
  return problem;
}

void print_degrees(const char* what, const Degrees& degrees) {
  fmt::print("{:<18} least {}, median {}, most {}; with none: {}, with one: {}\n", what,
             thousands(degrees.least), thousands(degrees.median), thousands(degrees.most),
             thousands(degrees.none), thousands(degrees.one));
}

void print_summary(const SparsityPattern& pattern, const PatternSummary& summary) {
  fmt::print("{}  {}\n", bold("pattern"), printable(pattern.spelling()));
  fmt::print("{} queries x {} keys, as {}\n\n", thousands(pattern.rows()),
             thousands(pattern.columns()), form_text(pattern));
  fmt::print("{:<18} {}, density {:.4g} %\n", "pairs", thousands(pattern.nnz()),
             100 * pattern.density());
  print_degrees("keys of a query", summary.queries);
  print_degrees("queries of a key", summary.keys);
  fmt::print("{:<18} {}\n", "components", thousands(summary.components));
  if (summary.diagonals > 0) {
    fmt::print("{:<18} {}: key - query from {} to {}\n", "diagonals", thousands(summary.diagonals),
               thousands(summary.first_diagonal),
               thousands(summary.first_diagonal + summary.diagonals - 1));
  }
  fmt::print("{:<18} {} of {} hold a pair, {} of them hide none\n",
             fmt::format("tiles of {0} x {0}", kCountedTile), thousands(summary.tiles),
             thousands(summary.all_tiles), thousands(summary.whole_tiles));
  const DensityMap& map = summary.map;
  if (map.density.empty()) return;
  fmt::print(
      "\na character is {} x {} pairs, queries down and keys across: blank none visible, .:-=+*#% "
      "by eighths, @ all\n",
      map.cell_q, map.cell_k);
  fmt::print("{}", map_text(map));
}

int describe(const PatternOptions& options) {
  const Problem problem = problem_of(options);
  if (!options.out.empty()) require_writable(options.out);  // before the work, not after it
  const SparsityPattern pattern = pattern_of(problem);
  if (!options.out.empty()) require_pattern_file(pattern, options.out);
  const PatternSummary summary = summarize(pattern);
  if (!options.out.empty()) {
    const ElapsedLine elapsed("writing " + options.out);
    write_file(options.out, pattern_file_bytes(pattern, options.out));
  }
  if (options.json) {
    nlohmann::json object = pattern_summary_json(pattern, summary);
    object["version"] = version();
    fmt::print("{}\n", json_text(object));
    return 0;
  }
  print_summary(pattern, summary);
  if (options.out.empty()) return 0;
  const std::string path = printable(options.out);
  fmt::print("\nwritten to {}", path);
  // "," and "+" separate what stands beside a path in a mask.
  if (path == options.out && path.find_first_of(",+") == std::string::npos) {
    fmt::print("; as a mask: pattern_{}", path);
  }
  fmt::print("\n");
  return 0;
}

}  // namespace

void add_pattern(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("pattern", "what a mask's pairs look like, and files of them");
  auto options = std::make_shared<PatternOptions>();
  constexpr std::uint64_t kMost = (std::uint64_t{1} << 31) - 1;
  command
      ->add_option("mask", options->mask,
                   "a mask (attest list masks; docs/how-to/masks.md), for example block_64_10_7 or "
                   "pattern_FILE")
      ->required();
  command
      ->add_option("--seqlen", options->seqlen,
                   "queries, and keys; default what the mask's file or documents fix")
      ->check(whole_number(kMost));
  command->add_option("--seqlen-k", options->seqlen_k, "keys, where they are not as many")
      ->check(whole_number(kMost));
  command
      ->add_option("--out", options->out,
                   "write the pairs to this .json or .safetensors file: lists of blocks where the "
                   "mask is one of blocks, offsets where it is N:M, else lists of keys; a mask for "
                   "every command, pattern_FILE")
      ->check(not_empty());
  command->add_flag("--json", options->json, "as JSON (certify/schemas/pattern.schema.json)");
  command->footer(
      "Examples:\n"
      "  attest pattern butterfly_64x64 --seqlen 4096\n"
      "  attest pattern window_128_0+block_64_30_1 --seqlen 1024 --out mask.json\n"
      "  attest pattern pattern_mask.safetensors --json");
  command->callback([&action, options] { action = [options] { return describe(*options); }; });
}

}  // namespace attest::certify::cli
