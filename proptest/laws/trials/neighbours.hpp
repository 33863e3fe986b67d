#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "proptest/judge/run.hpp"

/// One entry of a batch among other entries.
namespace attest::proptest {

/// A batch that has an entry of another problem at a place of its own.
struct Neighbours {
  std::string words;  // "alone", or where it lies
  Problem problem;
  std::size_t place = 0;
};

/// Returns batches with entry `entry` of the problem: alone, and at other places beside entries of
/// other lengths, where lists of lengths give entries their own. Mask, heads and scale are the
/// problem's. The kernel need not claim them.  [proptest/laws/trials/neighbours_test]
/// Requires: no boolean mask with packed sequences.
std::vector<Neighbours> neighbours_of(const attest_description& description, const Problem& problem,
                                      std::size_t entry);

/// Returns values of a batch: those of the entry at its place, drawn ones elsewhere.
InputValues values_beside(const Problem& problem, const InputValues& values, std::size_t entry,
                          const Neighbours& batch, std::uint64_t seed);

/// Returns the run of the problem with the entry's results from the run of a batch. Sums over the
/// batch stay.
KernelRun with_entry_of(const KernelRun& run, const Problem& problem, std::size_t entry,
                        const KernelRun& other, const Neighbours& batch);

}  // namespace attest::proptest
