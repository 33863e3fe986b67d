#include "certify/cli/commands/defects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "certify/cli/interrupt.hpp"
#include "certify/cli/report.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/files.hpp"
#include "certify/printable.hpp"
#include "certify/score/cheat_score.hpp"
#include "certify/score/defect_score.hpp"
#include "certify/score/published_rules.hpp"
#include "core/error.hpp"
#include "core/text/suggest.hpp"
#include "core/text/thousands.hpp"

namespace attest::certify::cli {
namespace {

// Kernels to score: broken ones, and those that game their judge.
struct Chosen {
  std::vector<fixtures::CorpusEntry> defects;
  std::vector<fixtures::Cheat> cheats;
};

// Selects those with one of the names, in their order; all where none is given.
Chosen chosen(const std::vector<std::string>& names) {
  const Chosen all{fixtures::defect_corpus(), fixtures::cheats()};
  if (names.empty()) return all;
  std::vector<std::string> known;
  for (const fixtures::CorpusEntry& entry : all.defects) {
    known.emplace_back(entry.kernel->description.name);
  }
  for (const fixtures::Cheat& cheat : all.cheats) {
    known.emplace_back(cheat.name);
  }
  Chosen some;
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      throw InvalidProblem("no kernel that is broken on purpose is called '" + name + "'" +
                           did_you_mean(name, known) + " (`attest list defects` shows all)");
    }
    const auto number = static_cast<std::size_t>(found - known.begin());
    if (number < all.defects.size()) {
      some.defects.push_back(all.defects[number]);
    } else {
      some.cheats.push_back(all.cheats[number - all.defects.size()]);
    }
  }
  return some;
}

std::vector<DefectScore> score_all(const Registry& registry,
                                   const std::vector<fixtures::CorpusEntry>& corpus,
                                   const CampaignOptions& options) {
  const PlainKernels plain{registry.find("cpu/standard"), registry.find("cpu/loss_gradient")};
  std::vector<DefectScore> scores(corpus.size());
  ProgressLine line("defects");
  std::atomic<std::uint64_t> done{0};
  run_parallel(options.jobs, corpus.size(), [&](std::size_t k) {
    scores[k] = score_defect(corpus[k], plain, options, interrupted);
    line.update(++done, corpus.size());
  });
  return scores;
}

std::vector<CheatScore> score_cheats(const Registry& registry,
                                     const std::vector<fixtures::Cheat>& cheats,
                                     const CampaignOptions& options, const worker::Limits& limits) {
  const PlainKernels plain{registry.find("cpu/standard"), registry.find("cpu/loss_gradient")};
  std::vector<CheatScore> scores(cheats.size());
  ProgressLine line("cheats");
  std::atomic<std::uint64_t> done{0};
  run_parallel(options.jobs, cheats.size(), [&](std::size_t k) {
    scores[k] = score_cheat(cheats[k], plain, options, limits, interrupted);
    line.update(++done, cheats.size());
  });
  return scores;
}

std::vector<CampaignResult> correct_campaigns(const CampaignOptions& options) {
  std::vector<CampaignResult> results;
  for (const attest_kernel* kernel : fixtures::correct_variants()) {
    ProgressLine line(kernel->description.name);
    results.push_back(
        run_campaign(*kernel, options,
                     [&line](std::uint64_t done, std::uint64_t total) { line.update(done, total); },
                     {interrupted, nullptr}));
  }
  return results;
}

std::string how_small(const DefectScore& score) {
  const bool few = score.shrunk_to_few(), smallest = score.shrunk_to_smallest();
  if (!few && !smallest) return ": larger than the smallest documented, " + score.smallest;
  return std::string(": ") + (few ? "seqlen <= 4" : "") + (few && smallest ? ", " : "") +
         (smallest ? "documented smallest input" : "");
}

void print_score(const std::vector<DefectScore>& scores) {
  for (const DefectScore& score : scores) {
    if (score.interrupted) {
      fmt::print("{:<32} {} after {}\n", score.kernel, warning("interrupted"),
                 cases_text(score.cases, score.planned_cases));
      continue;
    }
    if (!score.caught) {
      fmt::print("{:<32} {} in {}\n", score.kernel, bad("NOT CAUGHT"),
                 counted(score.cases, "case"));
      continue;
    }
    fmt::print("{:<32} {} by {} after {}\n", score.kernel, good("caught"), score.caught->law,
               counted(score.cases, "case"));
    fmt::print("  shrunk to {} values={}{}\n", score.caught->shrunk.problem.to_string(),
               proptest::name(score.caught->shrunk.values), how_small(score));
    if (!score.accepted.empty())
      fmt::print("  let through by {}\n", fmt::join(score.accepted, ", "));
  }
}

void print_cheats(const std::vector<CheatScore>& scores) {
  std::size_t named = 0;
  for (const CheatScore& one : scores) {
    if (one.score.interrupted) {
      fmt::print("{:<32} {}\n", one.score.kernel, warning("interrupted"));
      continue;
    }
    if (!one.score.caught) {
      fmt::print("{:<32} {} in {}\n", one.score.kernel, bad("NOT CAUGHT"),
                 counted(one.score.cases, "case"));
      continue;
    }
    fmt::print("{:<32} {} by {} after {}\n", one.score.kernel, good("caught"),
               one.score.caught->law, counted(one.score.cases, "case"));
    for (const Suspicion& suspicion : one.suspicions) {
      fmt::print("  seen: it {}\n", suspicion.statement);
    }
    if (!one.named()) fmt::print("  {}: expected {}\n", bad("NOT NAMED"), one.expected);
    named += one.named() ? 1 : 0;
  }
  fmt::print("cheats: {} of {} caught and named\n", named, scores.size());
}

void print_totals(const std::vector<DefectScore>& scores) {
  const auto count = [&](const auto& holds) {
    return std::count_if(scores.begin(), scores.end(), holds);
  };
  fmt::print("{} of {} defects caught\n",
             count([](const auto& score) { return score.caught.has_value(); }), scores.size());
  fmt::print(
      "{} shrunk to seqlen <= 4 ({}) or the documented smallest input ({})\n",
      count([](const auto& score) { return score.shrunk_to_few() || score.shrunk_to_smallest(); }),
      count([](const auto& score) { return score.shrunk_to_few(); }),
      count([](const auto& score) { return score.shrunk_to_smallest(); }));
  const auto unjudged = count([](const auto& score) { return score.interrupted; });
  if (unjudged > 0) fmt::print("{}: {} not judged\n", warning("interrupted"), unjudged);
  for (const PublishedRule& rule : published_rules()) {
    fmt::print("  {:<16} lets {} through ({})\n", rule.name, count([&](const auto& score) {
                 return std::count(score.accepted.begin(), score.accepted.end(), rule.name) > 0;
               }),
               rule.source);
  }
}

}  // namespace

int certify_defects(const Registry& registry, const std::vector<std::string>& names,
                    const CampaignOptions& options, const worker::Limits& limits,
                    const ScoreOutput& output) {
  constexpr int kFailed = 1, kNothingProven = 3;
  const InterruptGuard guard(OnInterrupt::ask);
  const Chosen scored = chosen(names);
  const std::vector<DefectScore> scores = score_all(registry, scored.defects, options);
  const std::vector<CheatScore> cheats = score_cheats(registry, scored.cheats, options, limits);
  const std::vector<CampaignResult> correct =
      names.empty() ? correct_campaigns(options) : std::vector<CampaignResult>{};
  const bool all = std::all_of(scores.begin(), scores.end(),
                               [](const auto& score) { return score.caught.has_value(); }) &&
                   std::all_of(cheats.begin(), cheats.end(),
                               [](const CheatScore& score) { return score.named(); });
  const bool clean = std::all_of(correct.begin(), correct.end(),
                                 [](const auto& result) { return result.findings.empty(); });
  const int code = interrupted() ? kNothingProven : all && clean ? 0 : kFailed;
  nlohmann::json object = score_json(scores, options);
  object["cheats"] = cheats_json(cheats);
  object["exit_code"] = code;
  object["interrupted"] = interrupted();
  for (const CampaignResult& result : correct) {
    object["correct"][result.kernel] = {{"cases", result.cases},
                                        {"planned_cases", result.planned_cases},
                                        {"checks_passed", result.passed()},
                                        {"false_alarms", result.findings.size()}};
  }
  if (!output.file.empty()) write_file(output.file, json_text(object) + "\n");
  if (output.json) {
    fmt::print("{}\n", json_text(object));
    return code;
  }
  print_score(scores);
  print_totals(scores);
  print_cheats(cheats);
  for (const CampaignResult& result : correct) {
    fmt::print("{}: {}, {} checks passed, {} false alarms\n", result.kernel,
               cases_text(result.cases, result.planned_cases), thousands(result.passed()),
               result.findings.size());
    for (const Finding& finding : result.findings) {
      fmt::print("  {} on {}: {}\n", finding.law, finding.shrunk.problem.to_string(),
                 finding.message);
    }
  }
  if (!output.file.empty()) fmt::print("score: {}\n", printable(output.file));
  return code;
}

}  // namespace attest::certify::cli
