#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "certify/campaign/campaign.hpp"
#include "core/error.hpp"

namespace attest::certify::cli {

/// Files a certificate is rendered to; empty: not.
struct ReportFiles {
  std::string html, junit, sarif, markdown;
  std::string source;   // where remarks are shown that name no place: FILE or FILE:LINE
  bool github = false;  // remarks as workflow commands, printed

  /// The files, none of the same name as another or as those of `more`.
  std::vector<std::pair<const char*, std::string>> named() const;
  bool any() const;
};

/// --html, --junit, --sarif, --markdown, --github and --source.
void add_report_files(CLI::App& command, ReportFiles& files);

/// Throws InvalidProblem unless the files can be written and --source names a place.
void require_report_files(const ReportFiles& files);

/// An option and the file it names, which may be empty: none.
struct NamedFile {
  const char* option;
  std::string path;
};

/// Two options name one regular file.
class SameFile : public InvalidProblem {
  using InvalidProblem::InvalidProblem;
};

/// Throws SameFile when two options name one regular file: what is written last would destroy
/// what was read or written before.
void require_distinct(const std::vector<NamedFile>& files);

/// Returns those of the files that lie there already, of an earlier run; not the one that
/// GITHUB_STEP_SUMMARY names, which grows.
std::vector<std::string> earlier_files(const std::string& certificate, const ReportFiles& files);

/// Renders a certificate to the files, and prints what is to be printed. Markdown is added to the
/// file that GITHUB_STEP_SUMMARY names.  [certify/cli/tests/pipelines_test]
void write_reports(const nlohmann::json& certificate, const ReportFiles& files);

/// Creates the folder where it does not exist; throws InvalidProblem when that fails.
void require_folder(const std::string& folder);

/// Returns the files in a folder that save_failures wrote of the kernel in an earlier run.
std::vector<std::string> earlier_failures(const std::string& folder, const std::string& kernel);

/// Saves the shrunk case of every finding, with values reduced as far as it still fails on them,
/// and notes the file in the finding. Saves the inputs of a case in which the kernel died or hung.
void save_failures(const std::string& folder, const attest_kernel& kernel, CampaignResult& result);

}  // namespace attest::certify::cli
