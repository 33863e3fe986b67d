#include "certify/emulation/emulated_check.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "proptest/judge/loss.hpp"

namespace attest::certify {
namespace {

using proptest::Case;

// Results that a call left behind, whatever its direction.
struct Results {
  attest_status status = ATTEST_OK;
  std::string misconduct;
  std::vector<Tensor> outputs;
};

Results results_of(const attest_kernel& kernel, const Case& c, Direction direction) {
  if (direction == Direction::loss_gradient) {
    proptest::LossRun run = proptest::run_loss(
        kernel, c.problem, proptest::make_loss_values(c.problem, c.values, c.seed), c);
    return {run.status, run.misconduct, {run.dX, run.dY}};
  }
  proptest::KernelRun run = proptest::run(
      kernel, c.problem, proptest::make_values(c.problem, c.values, c.seed), direction, c);
  return {run.status, run.misconduct, {run.O, run.LSE, run.dQ, run.dK, run.dV}};
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const auto bytes = static_cast<std::size_t>(a.view().size()) * size_bytes(a.view().dtype());
  return a.view().data() == nullptr || b.view().data() == nullptr ||
         std::memcmp(a.view().data(), b.view().data(), bytes) == 0;
}

// An output that was not asked for has no data.
bool has_elements(const Results& results) {
  return std::any_of(results.outputs.begin(), results.outputs.end(), [](const Tensor& output) {
    return output.view().data() != nullptr && output.view().size() > 0;
  });
}

// Backward runs forward first.
Direction direction_of(const attest_kernel& kernel, const Problem& problem) {
  const attest_description& description = kernel.description;
  if ((description.directions & ATTEST_LOSS_GRADIENT) != 0) return Direction::loss_gradient;
  const auto claimed = [&](Direction direction) {
    return proptest::unclaimed(description, problem, direction).empty();
  };
  return claimed(Direction::backward) ? Direction::backward : Direction::forward;
}

}  // namespace

bool EmulatedCheck::clean() const {
  return findings.empty() && std::all_of(runs.begin(), runs.end(), [](const EmulatedRun& run) {
           return run.launches.clean() && run.misconduct.empty();
         });
}

EmulatedCheck check_emulated(const attest_kernel& kernel, const Case& c, SharedMemoryChecks checks,
                             const std::function<void(const std::string&)>& begins) {
  EmulatedCheck found;
  const Direction direction = direction_of(kernel, c.problem);
  const std::string missing = proptest::unclaimed(kernel.description, c.problem, direction);
  if (!missing.empty()) {
    throw InvalidProblem(std::string(kernel.description.name) +
                         " does not claim this problem: " + missing);
  }
  Results first;
  for (std::size_t order = 0; order < emulation_orders().size(); ++order) {
    begins(emulation_orders()[order]);
    Results results;
    EmulatedRun run{std::string(words(direction)), emulation_orders()[order], {}, ""};
    run.launches =
        watch_launches(order, checks, [&] { results = results_of(kernel, c, direction); });
    if (results.status == ATTEST_UNSUPPORTED) {
      throw InvalidProblem(std::string(kernel.description.name) + " refuses this problem, " +
                           run.direction);
    }
    if (run.launches.launches == 0 && has_elements(results)) {
      throw InvalidProblem(std::string(kernel.description.name) +
                           " launches nothing that is emulated here");
    }
    run.misconduct = results.misconduct;
    if (order == 0) {
      first = results;
    } else if (kernel.description.numerics.nondeterministic == 0) {
      for (std::size_t k = 0; k < first.outputs.size(); ++k) {
        if (same_bits(first.outputs[k], results.outputs[k])) continue;
        found.findings.push_back(std::string(first.outputs[k].view().name()) +
                                 " has other bits in the order '" + run.order + "' than in '" +
                                 emulation_orders()[0] + "'");
      }
    }
    found.runs.push_back(std::move(run));
  }
  return found;
}

}  // namespace attest::certify
