#pragma once

#include "cpu/schedules/family.hpp"
#include "sparse/schedules/tile_list.hpp"

namespace attest::sparse {

/// Throws io::NotForProblem, with a mask to give or a schedule to choose, for a problem without a
/// pattern of pairs: the lists of a dense score matrix would name every tile.
/// [sparse/schedules/sparse_family_test "without a pattern"]
void require_pairs(const char* schedule, const char* dense, const attest_problem& problem);

/// A family of schedules that read lists of a pattern. The schedule struct has, besides what
/// cpu::Family asks of it, kDense: what to choose without a pattern.
template <class S>
class SparseFamily : public cpu::Family<S> {
 public:
  std::unique_ptr<io::Schedule> make(const io::ScheduleSpec& spec, const attest_problem& problem,
                                     io::FastMemory capacity) const override {
    require_pairs(S::kName, S::kDense, problem);
    return cpu::Family<S>::make(spec, problem, capacity);
  }
};

}  // namespace attest::sparse
