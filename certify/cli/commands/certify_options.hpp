#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "certify/cli/kernels.hpp"
#include "certify/cli/reports.hpp"

namespace attest::certify::cli {

/// Options of `attest certify`.
struct CertifyOptions {
  std::vector<std::string> kernels, except;
  bool all = false, correct = false, json = false, verbose = false, defects = false;
  std::string tier = "smoke", shapes = "model", only, mask, out, resume, shard = "1/1";
  std::vector<std::string> problems;
  std::string problem_file;
  ReportFiles reports;
  std::string failures;  // folder
  std::uint64_t seed = 1;
  std::optional<std::uint64_t> data_seed, cases;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::string> merge;
  IsolationOptions isolation;
  std::string max_time, known_failures, failed_first;
  bool fail_fast = false, estimate = false;
};

/// Adds the options of `attest certify` to its command, with their help and examples.
void add_certify_options(CLI::App& command, CertifyOptions& options);

/// Throws InvalidProblem for options that do not go together.
void require_together(const CLI::App& command, const CertifyOptions& options);

}  // namespace attest::certify::cli
