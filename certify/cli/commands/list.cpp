#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "certify/certificate.hpp"
#include "certify/cli/commands.hpp"
#include "certify/cli/commands/sparse_check.hpp"
#include "certify/cli/kernels.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/plan/coverage.hpp"
#include "certify/reproduce/experiment.hpp"
#include "core/contract/contract_text.hpp"
#include "core/error.hpp"
#include "core/mask/mask_spellings.hpp"
#include "core/text/suggest.hpp"
#include "core/text/thousands.hpp"
#include "fixtures/cheats.hpp"
#include "fixtures/devices.hpp"
#include "fixtures/models.hpp"
#include "fixtures/register.hpp"
#include "proptest/laws/law.hpp"
#include "proptest/values/values.hpp"
#include "sparse/inputs/schedules/input_schedules.hpp"

namespace attest::certify::cli {
namespace {

struct Row {
  std::string name, text, more;
  std::string source{};  // paper and algorithm, of schedules
};

struct Section {
  std::string name;
  std::vector<Row> rows;
};

std::string parameters_text(const io::ScheduleFamily& family) {
  std::string text = std::string(name(family.direction())) + "; tiles";
  for (const io::ScheduleParameter& parameter : family.parameters()) {
    text += " " + parameter.name;
    if (!parameter.choices.empty()) text += fmt::format("={}", fmt::join(parameter.choices, "|"));
  }
  return text;
}

std::string levels_text(const fixtures::Device& device) {
  std::string text = device.kind;
  for (const fixtures::Boundary& boundary : device.boundaries) {
    text += fmt::format("; {} {} bytes per {}", boundary.fast, thousands(boundary.fast_bytes),
                        boundary.per);
  }
  return text;
}

std::vector<Section> sections(const Registry& registry, const io::ScheduleRegistry& schedules) {
  std::vector<Section> all{{"kernels", {}}, {"schedules", {}}, {"experiments", {}},
                           {"devices", {}}, {"models", {}},    {"laws", {}},
                           {"values", {}},  {"defects", {}},   {"sparse_inputs", {}},
                           {"masks", {}}};
  for (const attest_kernel* kernel : registry.kernels()) {
    const std::string kernel_name = kernel->description.name;
    if (is_fixture(kernel_name)) continue;
    all[0].rows.push_back({kernel_name, kernel->description.summary, ""});
  }
  for (const auto& family : schedules.families()) {
    all[1].rows.push_back(
        {family->name(), family->summary(), parameters_text(*family), family->source()});
  }
  for (const sparse::InputSchedule& schedule : sparse::input_schedules()) {
    all[1].rows.push_back({schedule.name, schedule.summary,
                           fmt::format("{}, with --inputs; tiles {}", name(schedule.direction),
                                       fmt::join(schedule.parameters, " ")),
                           schedule.source});
  }
  for (const Experiment& experiment : experiments()) {
    std::string sizes;
    for (const SizeOption& size : experiment.sizes) sizes += " --" + size.name;
    all[2].rows.push_back(
        {experiment.name, experiment.title, sizes.empty() ? "" : "takes" + sizes});
  }
  for (const fixtures::Device& device : fixtures::devices()) {
    all[3].rows.push_back({device.name, levels_text(device), device.source});
  }
  for (const fixtures::Model& model : fixtures::models()) {
    all[4].rows.push_back({model.name, model.problem.to_string(), model.source});
  }
  for (const proptest::Law& law : proptest::laws()) {
    all[5].rows.push_back({std::string(law.name), std::string(law.statement), ""});
  }
  for (const auto* families : {&proptest::all_values(), &proptest::refused_values()}) {
    for (const proptest::Values values : *families) {
      all[6].rows.push_back(
          {std::string(proptest::name(values)), std::string(proptest::reason(values)), ""});
    }
  }
  for (const fixtures::DefectRecord& record : fixtures::defects()) {
    all[7].rows.push_back({"broken/" + std::string(record.name), std::string(record.symptom),
                           "smallest input: " + std::string(record.smallest) +
                               (record.seen.empty() ? "" : "; seen in ") +
                               std::string(record.seen)});
  }
  for (const fixtures::LossDefectRecord& record : fixtures::loss_defects()) {
    all[7].rows.push_back({"broken/" + std::string(record.name), std::string(record.symptom),
                           "smallest input: " + std::string(record.smallest)});
  }
  for (const fixtures::Cheat& cheat : fixtures::cheats()) {
    all[7].rows.push_back({std::string(cheat.name), std::string(cheat.deed), ""});
  }
  for (const SparseKernel& kernel : all_sparse_kernels()) {
    all[8].rows.push_back({kernel.name, kernel.summary, ""});
  }
  for (const MaskSpelling& part : mask_spellings()) {
    all[9].rows.push_back({part.form, part.summary, ""});
  }
  return all;
}

std::string claims(const attest_description& d) {
  std::vector<std::string> words;
  const auto add = [&words](std::uint32_t bits, const auto& table) {
    const std::vector<std::string> more = words_of(bits, table);
    words.insert(words.end(), more.begin(), more.end());
  };
  add(d.directions,
      std::vector<std::pair<std::uint32_t, const char*>>{{ATTEST_FORWARD, "forward"},
                                                         {ATTEST_BACKWARD, "backward"},
                                                         {ATTEST_LOSS_GRADIENT, "loss_gradient"}});
  add(d.dtypes, dtype_words());
  add(d.features, feature_words());
  if (d.max_head_dim > 0) words.push_back(fmt::format("head_dim<={}", d.max_head_dim));
  if (d.head_dim_multiple > 1) words.push_back(fmt::format("head_dim%{}", d.head_dim_multiple));
  const std::vector<std::string> limits = limit_words(d);
  words.insert(words.end(), limits.begin(), limits.end());
  for (const std::string& word : words_of(d.may_change, may_change_words())) {
    words.push_back("may_change_" + word);
  }
  if (const std::string contract = contract_text(d.numerics); !contract.empty()) {
    words.push_back("contract " + contract);
  }
  return fmt::format("{}", fmt::join(words, " "));
}

// The kernels of a library and what they claim.
Section library_section(const Registry& registry, const std::string& word) {
  Section section{"kernels", {}};
  Kernels known(registry, {});
  for (const attest_kernel* kernel : known.find(word)) {
    const attest_description& d = kernel->description;
    section.rows.push_back({d.name, d.summary, claims(d)});
  }
  return section;
}

void print_text(const std::vector<Section>& chosen) {
  for (const Section& section : chosen) {
    fmt::print("{}\n", bold(section.name));
    std::size_t width = 26;
    for (const Row& row : section.rows) width = std::max(width, row.name.size());
    for (const Row& row : section.rows) {
      fmt::print("  {:<{}} {}\n", row.name, width, row.text);
      for (const std::string& line : {row.source, row.more}) {
        if (!line.empty()) fmt::print("  {:<{}} {}\n", "", width, line);
      }
    }
  }
}

void print_json(const std::vector<Section>& chosen) {
  nlohmann::json object;
  for (const Section& section : chosen) {
    auto& list = object[section.name] = nlohmann::json::array();
    for (const Row& row : section.rows) {
      list.push_back({{"name", row.name}, {"text", row.text}});
      if (!row.more.empty()) list.back()["more"] = row.more;
      if (!row.source.empty()) list.back()["source"] = row.source;
    }
  }
  fmt::print("{}\n", json_text(object));
}

int list(const Registry& registry, const io::ScheduleRegistry& schedules, const std::string& what,
         std::size_t json_flags) {
  std::vector<Section> chosen;
  std::vector<std::string> names;
  if (names_library(what) || names_function(what))
    chosen.push_back(library_section(registry, what));
  for (const Section& section : sections(registry, schedules)) {
    names.push_back(section.name);
    if (what.empty() || what == section.name) chosen.push_back(section);
  }
  if (chosen.empty()) {
    throw InvalidProblem(
        "nothing called '" + what + "' to list" + did_you_mean(what, names) +
        " (kernels schedules experiments devices models laws values defects sparse_inputs masks)");
  }
  if (json_flags > 0) {
    print_json(chosen);
  } else {
    print_text(chosen);
  }
  return 0;
}

}  // namespace

void add_list(CLI::App& app, const Registry& registry, const io::ScheduleRegistry& schedules,
              Action& action) {
  CLI::App* command = app.add_subcommand(
      "list",
      "kernels, schedules, experiments, devices, models, laws, values, defects, sparse_inputs, "
      "masks");
  auto what = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command->add_option(
      "what", *what,
      "kernels, schedules, experiments, devices, models, laws, values, "
      "defects, sparse_inputs (kernels of attest check-sparse), masks, or a library "
      "(./libmine.so); all when absent");
  command->add_flag("--json", *json, "as JSON");
  command->footer(
      "Examples:\n  attest list laws\n  attest list models --json\n  attest list ./libmine.so");
  command->callback([&registry, &schedules, &action, what, json] {
    action = [&registry, &schedules, what, json] {
      return list(registry, schedules, *what, *json ? 1 : 0);
    };
  });
}

}  // namespace attest::certify::cli
