// The law of K and V in one buffer, which needs no reference.
#include "proptest/laws/catalogue.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

Problem with_shared(Problem problem, SharedKv shared) {
  problem.shared_kv = shared;
  return problem;
}

// Strides and values are the same on both sides: only the addresses differ.
LawResult check_shared_kv(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_deterministic(kernel);
    const bool last = c.problem.shared_kv == SharedKv::none ? (c.seed & 1u) != 0
                                                            : c.problem.shared_kv == SharedKv::last;
    const Problem shared = with_shared(c.problem, last ? SharedKv::last : SharedKv::first),
                  apart =
                      with_shared(c.problem, last ? SharedKv::last_apart : SharedKv::first_apart);
    require_claimed(kernel, shared, Direction::forward);
    const Direction direction = furthest(kernel, shared);
    require_pairs(kernel, shared, direction);
    const Solved one(kernel, shared, make_values(shared, c.values, c.seed), direction, c);
    const KernelRun two = complete(kernel, apart, one.values, direction, c);
    const LawResult result =
        same_bits(two, one.run, direction, "K and V in one buffer change a result");
    return result.verdict == Verdict::passed ? judged_with_truth(result.comparisons, one) : result;
  });
}

}  // namespace

std::vector<Law> shared_kv_laws() {
  Law law{"shared_kv", "K and V in one buffer give the bits of two buffers", check_shared_kv};
  law.features = ATTEST_SHARED_KV;
  return {law};
}

}  // namespace attest::proptest
