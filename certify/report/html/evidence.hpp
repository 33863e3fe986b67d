#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "certify/report/suspicion.hpp"
#include "core/abi/attest_kernel.h"
#include "proptest/judge/run.hpp"
#include "proptest/signatures/signature.hpp"

/// Evidence that a failing case shows besides its message.
namespace attest::certify {

/// Where in an output the errors lie: cells of a grid, the largest error over bound in each.
struct ErrorGrid {
  std::string output;                // of the worst element
  std::int64_t batch = 0, head = 0;  // the slice drawn, that of the worst element
  std::string row_axis, column_axis;
  std::int64_t rows = 0, columns = 0;          // elements
  std::int64_t row_step = 1, column_step = 1;  // elements per cell, powers of two
  std::vector<double> cells;  // row by row, three digits; infinity for a wrong class
};

/// The grid of the worst output of a run compared with the truth, at most 32 cells a side; nothing
/// when every output lies within its bounds, the kernel did not complete the case, its contract has
/// no bounds or the problem has more than 2^26 products.
/// [certify/report/html/evidence_test "errors lie where the defect is"]
std::optional<ErrorGrid> error_grid(const attest_kernel& kernel, const proptest::Case& c);

/// The output that the message of a refused run is about and the largest term of its bound, "dQ:
/// stored O and LSE"; "" where error_grid has nothing and where
/// a result is NaN or infinite.
/// [certify/report/html/evidence_test "the bound's largest term is named"]
std::string bound_term(const attest_kernel& kernel, const proptest::Case& c);

/// Tells whether a picture or further checks of a problem are worth their time: at most 2^26
/// products.
bool affordable(const Problem& problem);

/// Tells whether results of a run are refused, and each element refused is 0 where the exact result
/// is subnormal.  [certify/report/contracts_test "hints"]
bool flushes_results(const attest_kernel& kernel, const proptest::Case& c);

struct Evidence {
  std::vector<proptest::Signature> signatures;
  std::optional<ErrorGrid> grid;        // of the case as it was found
  std::string bound_term;               // of the shrunk case
  std::vector<Suspicion> suspicions{};  // not filled in by `examine`, nor are the hints
  std::vector<std::string> hints{};     // hints_of the failure
};

/// [certify/report/html/evidence_test "errors lie where the defect is"]
Evidence examine(const attest_kernel& kernel, const proptest::Case& found,
                 const proptest::Case& shrunk);

}  // namespace attest::certify
