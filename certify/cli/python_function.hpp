#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "certify/worker/process/process.hpp"

/// Functions in Python as kernels: `attest certify package.module:function`.
namespace attest::certify::cli {

/// How a function is called, in the words of attest.certify; "" where it says nothing.
struct FunctionOptions {
  std::string like, device, autotune, backward, numerics, empty_row, past_length, lse_base;
  std::vector<std::string> dtypes, claims, limits;

  bool given() const;
};

/// --like, --device, --autotune, --backward, --numerics, --dtypes, --claims, --limits,
/// --empty-row and --lse-base.
void add_function_options(CLI::App& command, FunctionOptions& options);

/// Tells whether a word given as kernel is a function: "package.module:function" or
/// "file.py:function", with the configuration of its autotuned kernels in brackets or without.
bool names_function(const std::string& word);

/// Returns the program that serves the function, called with the configuration in brackets after
/// its name or that of the options, not both: the Python of the environment ($ATTEST_PYTHON,
/// that of $VIRTUAL_ENV or $CONDA_PREFIX, python3 of the PATH) with the package attest. Throws
/// InvalidProblem where there is no Python.
worker::Source function_source(const std::string& word, const FunctionOptions& options);

/// The configurations of the function's autotuned kernels, one kernel's each, as the option
/// autotune and the brackets after the word name them. Throws InvalidProblem where it has none,
/// and with the reason where Python cannot tell.
std::vector<std::string> function_configurations(const std::string& word,
                                                 const FunctionOptions& options);

/// Becomes the count of the function's kernels (attest.count of the package), with flags for
/// attest._commands.count. Throws InvalidProblem where there is no Python.
[[noreturn]] void become_function_count(const std::string& word, const FunctionOptions& options,
                                        const std::string& problem,
                                        const std::vector<std::string>& flags);

}  // namespace attest::certify::cli
