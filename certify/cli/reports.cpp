#include "certify/cli/reports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "certify/audit/seal.hpp"
#include "certify/campaign/host.hpp"
#include "certify/cli/commands.hpp"
#include "certify/cli/report.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/files.hpp"
#include "certify/plan/sizes.hpp"
#include "certify/printable.hpp"
#include "certify/report/certificate_fields.hpp"
#include "certify/report/comparison.hpp"
#include "certify/report/failure.hpp"
#include "certify/report/html/html.hpp"
#include "certify/report/html/index.hpp"
#include "certify/report/junit.hpp"
#include "certify/report/kernel_names.hpp"
#include "certify/report/remarks/annotations.hpp"
#include "certify/report/remarks/markdown.hpp"
#include "certify/report/remarks/remarks.hpp"
#include "certify/report/remarks/sarif.hpp"
#include "core/error.hpp"

namespace attest::certify::cli {
namespace {

struct ReportOptions {
  std::string first, second;
  std::string index, papers;  // the first page, and what attest reproduce wrote
  ReportFiles files;
  bool json = false;
};

// From the root: what does not exist yet keeps its spelling otherwise.
std::filesystem::path place_of(const std::string& file) {
  return std::filesystem::weakly_canonical(std::filesystem::absolute(target_of(file)));
}

// The file to which each command of a step of GitHub Actions adds.
bool is_step_summary(const std::string& file) {
  const char* const summary = std::getenv("GITHUB_STEP_SUMMARY");
  return summary != nullptr && *summary != '\0' && place_of(file) == place_of(summary);
}

TensorFile tensors_of(const attest_kernel& kernel, const std::string& name,
                      const Finding& finding) {
  const FailureNote note{name, finding.law, finding.message, finding.checks};
  const Inputs generated = generated_inputs(kernel, finding.shrunk);
  if (finding.verdict == Verdict::crashed) return inputs_file(finding.shrunk, generated, note);
  const std::optional<Inputs> reduced = reduce_values(kernel, finding.shrunk, generated);
  return failure_file(kernel, finding.shrunk, reduced ? *reduced : generated, note);
}

std::string text_of(const nlohmann::json& object, const char* key) {
  return printable(object.at(key).get<std::string>());
}

// A certificate that was changed says nothing of a kernel. Older ones have no SHA-256 of their own.
nlohmann::json read_unchanged(const std::string& path) {
  nlohmann::json certificate = read_certificate(path);
  const std::string fault = seal_fault(certificate);
  if (!fault.empty() && certificate.contains("sha256")) {
    throw InvalidProblem("certificate '" + path + "' " + fault +
                         "; pass it as attest certify wrote it");
  }
  if (!fault.empty()) fmt::print(stderr, "attest: '{}' {}\n", printable(path), fault);
  return certificate;
}

// Older certificates have no such list.
void print_also(const nlohmann::json& laws) {
  if (!laws.empty()) fmt::print("    also fails: {}\n", printable(names_text(laws)));
}

void print_certificate(const nlohmann::json& certificate) {
  reading_certificate([&] {
    const std::string part = shard_text(certificate),
                      shard = part.empty() ? "" : printable(part) + ", ";
    for (const nlohmann::json& kernel : certificate.at("kernels")) {
      const std::uint64_t cases = kernel.at("cases");
      fmt::print("{}  {}{}  ({}, {} checks passed, {} vacuous)\n", bold(text_of(kernel, "kernel")),
                 shard, printable(verdict_of(kernel)),
                 cases_text(cases, kernel.value("planned_cases", cases)),
                 count_text(kernel.at("checks").at("passed")),
                 count_text(kernel.at("checks").at("vacuous")));
      if (kernel.contains("ran"))
        fmt::print("  ran {}\n", text_of(kernel, "ran"));  // not in older ones
      if (const auto id = kernel.value("library_sha256", nlohmann::json()); id.is_string()) {
        fmt::print("  SHA-256 of the file      {}\n", printable(id.get<std::string>()));
      }
      for (const nlohmann::json& one : kernel.value("needed", nlohmann::json::array())) {
        fmt::print("  linked with              {}\n", text_of(one, "file"));
      }
      const auto sizes = kernel.at("coverage").value("sizes", nlohmann::json::object());
      for (const auto& [mask, covered] : sizes.items()) {
        fmt::print("  sizes covered: {:<9} {}\n", printable(mask), sizes_text(covered));
      }
      print_sampled(kernel.at("coverage").value("sampled_positions", std::int64_t{0}));
      for (const nlohmann::json& gap : kernel.at("incomplete")) {
        fmt::print("  {} {}\n", warning("incomplete:"), printable(gap.get<std::string>()));
      }
      for (const nlohmann::json& finding : kernel.at("findings")) {
        fmt::print("    {} {}: {}\n", text_of(finding, "law"), text_of(finding, "verdict"),
                   hanging(finding.at("message").get<std::string>(), 6));
        print_also(finding.value("also", nlohmann::json::array()));
        if (const std::string term = text_of(finding, "bound_term"); !term.empty()) {
          fmt::print("    largest term of the bound of {}\n", term);
        }
        for (const nlohmann::json& signature : finding.at("signatures")) {
          fmt::print("    equals {}\n", text_of(signature, "equals"));
        }
        for (const nlohmann::json& one : finding.value("suspicions", nlohmann::json::array())) {
          fmt::print("    seen: it {}\n", text_of(one, "deed"));
        }
        if (const std::string standing = standing_of(finding); !standing.empty()) {
          fmt::print("    {}\n", standing);
        }
        for (const nlohmann::json& hint : finding.value("hints", nlohmann::json::array())) {
          fmt::print("    {}\n", printable(hint.get<std::string>()));
        }
        fmt::print("    reproduce: {}\n", text_of(finding, "reproduce"));
      }
    }
  });
}

void print_changes(const std::vector<Change>& changes) {
  if (changes.empty()) fmt::print("no difference\n");
  for (const Change& change : changes) {
    const std::string word = change.kind == ChangeKind::regression    ? bad("regression ")
                             : change.kind == ChangeKind::improvement ? good("improvement")
                                                                      : "note       ";
    fmt::print("{}  {}{}{}\n", word, bold(printable(change.kernel)),
               change.kernel.empty() ? "" : ": ", printable_lines(change.what));
    if (change.reproduce.empty()) continue;
    fmt::print("    reproduce: {}\n", printable_lines(change.reproduce));
  }
}

// A link from a page to a file: relative, whatever folder the page is read in.
std::string link_to(const std::string& file, const std::string& page) {
  if (file.empty()) return "";
  const auto from = std::filesystem::weakly_canonical(page).parent_path();
  return std::filesystem::weakly_canonical(file).lexically_relative(from).generic_string();
}

// Names the tensors of a law's finding. A law may have one of each kind of failure; the first is 1.
std::string failure_file_name(const std::string& folder, const std::string& kernel,
                              std::string_view law, int number) {
  const std::string name = file_word(kernel) + "." + std::string(law) +
                           (number > 1 ? "." + std::to_string(number) : "") + ".safetensors";
  return (std::filesystem::path(folder) / name).string();
}

nlohmann::json read_papers(const std::string& path) {
  nlohmann::json papers = nlohmann::json::parse(read_file(path), nullptr, false);
  if (papers.is_discarded()) {
    throw InvalidProblem("--papers " + path +
                         ": no JSON; pass the reproduce.json that attest reproduce wrote");
  }
  return papers;
}

void write_index(const nlohmann::json& certificate, const ReportOptions& options) {
  const nlohmann::json papers =
      options.papers.empty() ? nlohmann::json() : read_papers(options.papers);
  const std::string papers_page =
      options.papers.empty()
          ? ""
          : (std::filesystem::path(options.papers).parent_path() / "index.html").string();
  const auto to = [&](const std::string& file) { return link_to(file, options.index); };
  write_file(options.index, index_page(certificate, papers,
                                       {to(options.files.html), to(options.first),
                                        to(options.files.junit), to(papers_page)}));
}

int report(const ReportOptions& options) {
  const nlohmann::json first = read_unchanged(options.first);
  if (options.index.empty() && !options.papers.empty()) {
    throw InvalidProblem("--papers is for the first page; pass --index FILE too");
  }
  if (options.second.empty()) {
    std::vector<NamedFile> files{{"the certificate", options.first},
                                 {"--index", options.index},
                                 {"--papers", options.papers}};
    for (const auto& [option, path] : options.files.named()) files.push_back({option, path});
    require_distinct(files);
    if (options.json) throw InvalidProblem("--json is for two certificates; one is JSON already");
    require_report_files(options.files);
    if (!options.index.empty()) {
      require_writable(options.index);
      write_index(first, options);
    }
    write_reports(first, options.files);
    if (!options.files.any() && options.index.empty()) print_certificate(first);
    return 0;
  }
  if (options.files.any() || !options.index.empty()) {
    throw InvalidProblem(
        "--html, --junit, --sarif, --markdown, --github and --index render one certificate; pass "
        "one file");
  }
  const nlohmann::json second = read_unchanged(options.second);
  const std::vector<Change> changes = compare_certificates(first, second);
  if (options.json) {
    fmt::print("{}\n", json_text(comparison_json(changes)));
  } else {
    print_changes(changes);
  }
  return exit_code(changes);
}

}  // namespace

std::vector<std::pair<const char*, std::string>> ReportFiles::named() const {
  return {{"--html", html}, {"--junit", junit}, {"--sarif", sarif}, {"--markdown", markdown}};
}

bool ReportFiles::any() const {
  const auto all = named();
  return github ||
         std::any_of(all.begin(), all.end(), [](const auto& one) { return !one.second.empty(); });
}

void add_report_files(CLI::App& command, ReportFiles& files) {
  command.add_option("--html", files.html, "write one page to look at to this file")
      ->check(not_empty());
  command.add_option("--junit", files.junit, "write JUnit XML to this file")->check(not_empty());
  command
      .add_option("--sarif", files.sarif,
                  "write findings as SARIF to this file, for code scanning and editors")
      ->check(not_empty());
  command
      .add_option("--markdown", files.markdown,
                  "write a screenful of Markdown to this file; added to the end of "
                  "\"$GITHUB_STEP_SUMMARY\" where it is that")
      ->check(not_empty());
  command.add_flag("--github", files.github,
                   "print findings as annotations of GitHub Actions as well");
  command
      .add_option("--source", files.source,
                  "FILE or FILE:LINE where annotations and SARIF show what names no place itself; "
                  "default: the library or module")
      ->check(not_empty());
}

void require_distinct(const std::vector<NamedFile>& files) {
  std::map<std::filesystem::path, const char*> taken;
  for (const NamedFile& file : files) {
    if (file.path.empty()) continue;
    const auto place = place_of(file.path);
    // Any number may go to /dev/null.
    if (std::filesystem::exists(place) && !std::filesystem::is_regular_file(place)) continue;
    const auto [other, alone] = taken.emplace(place, file.option);
    if (alone || other->second == std::string_view(file.option)) continue;
    throw SameFile(fmt::format("{} and {} name the same file, '{}'; give each its own",
                               other->second, file.option, file.path));
  }
}

void require_report_files(const ReportFiles& files) {
  for (const auto& [option, path] : files.named()) {
    if (!path.empty()) require_writable(path);
  }
  if (!files.source.empty()) parse_place(files.source);
}

std::vector<std::string> earlier_files(const std::string& certificate, const ReportFiles& files) {
  std::vector<std::string> paths{certificate}, earlier;
  for (const auto& [option, path] : files.named()) paths.push_back(path);
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(earlier),
               [](const std::string& path) {
                 std::error_code none;
                 return !path.empty() && std::filesystem::is_regular_file(path, none) &&
                        !is_step_summary(path) && !is_machine_code(path) && !is_printed_to(path);
               });
  return earlier;
}

void write_reports(const nlohmann::json& certificate, const ReportFiles& files) {
  if (!files.html.empty()) write_file(files.html, html_report(certificate));
  if (!files.junit.empty()) write_file(files.junit, junit_report(certificate));
  if (!files.markdown.empty()) {
    const std::string text = markdown_report(certificate);
    if (is_step_summary(files.markdown)) {
      append_file(files.markdown, text);
    } else {
      write_file(files.markdown, text);
    }
  }
  const SourcePlace given = files.source.empty() ? SourcePlace{} : parse_place(files.source);
  const std::vector<Remark> remarks = remarks_of(certificate, given);
  if (!files.sarif.empty()) write_file(files.sarif, sarif_report(remarks, version()));
  if (files.github) fmt::print("{}", github_annotations(remarks));
}

void require_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!std::filesystem::is_directory(folder, error)) {
    throw InvalidProblem("cannot create the folder '" + folder +
                         "'; pass a name in a writable directory");
  }
  require_writable((std::filesystem::path(folder) / "failure.safetensors").string());
}

std::vector<std::string> earlier_failures(const std::string& folder, const std::string& kernel) {
  std::vector<std::string> earlier;
  for (const proptest::Law& law : proptest::laws()) {
    for (int number = 1;; ++number) {
      const std::string file = failure_file_name(folder, kernel, law.name, number);
      if (!std::filesystem::is_regular_file(file)) break;
      earlier.push_back(file);
    }
  }
  return earlier;
}

void save_failures(const std::string& folder, const attest_kernel& kernel, CampaignResult& result) {
  std::map<std::string, int> of_law;
  for (Finding& finding : result.findings) {
    const TensorFile file = tensors_of(kernel, result.kernel, finding);
    finding.file = failure_file_name(folder, result.kernel, finding.law, ++of_law[finding.law]);
    write_file(finding.file, safetensors(file));
  }
}

void add_report(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "report", "renders a certificate again, or compares two, regressions first");
  auto options = std::make_shared<ReportOptions>();
  command->add_option("certificate", options->first, "a file that attest certify --out wrote")
      ->required();
  command->add_option("newer", options->second, "a later one: what changed from the first to it");
  add_report_files(*command, options->files);
  command
      ->add_option(
          "--index", options->index,
          "write a first page to this file: the verdict, and links to the files of --html, "
          "--junit and --papers")
      ->check(not_empty());
  command
      ->add_option("--papers", options->papers,
                   "reproduce.json of attest reproduce, for the first page")
      ->check(not_empty());
  command->add_flag("--json", options->json, "the comparison as JSON");
  command->footer(
      "Exit codes: 0 rendered, or no regression; 1 a regression; 2 bad input.\n"
      "Examples:\n"
      "  attest report certificate.json --html report.html --junit junit.xml\n"
      "  attest report certificate.json --sarif findings.sarif --source src/attention.cu --github\n"
      "  attest report out/certificate.json --html out/report.html --index out/index.html "
      "--papers out/reproduce/reproduce.json\n"
      "  attest report before.json after.json");
  command->callback([&action, options] { action = [options] { return report(*options); }; });
}

}  // namespace attest::certify::cli
