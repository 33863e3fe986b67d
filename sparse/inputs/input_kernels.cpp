#include "sparse/inputs/input_kernels.hpp"

#include "io/machine/counting_machine.hpp"
#include "sparse/inputs/attention.hpp"
#include "sparse/inputs/schedules/sparse_flash.hpp"
#include "sparse/inputs/schedules/sparse_flash_backward.hpp"
#include "sparse/inputs/schedules/stored_support.hpp"
#include "sparse/inputs/schedules/stored_support_backward.hpp"
#include "sparse/inputs/words/attention_words.hpp"

namespace attest::sparse {
namespace {

// Returns the extent of each of three tiles, the last shorter: seams and a ragged end in every size
// from 7 on.
std::int64_t tile(std::int64_t extent) { return extent / 3 + 1; }

template <class Schedule, class Store>
void run(const Schedule& schedule, Store& store) {
  io::CountingMachine machine{io::FastMemory{}};
  schedule.run(machine, store.slow());
}

SparseOutputs flash_forward(const SparseOperands& in) {
  AttentionStore store(in);
  run(SparseFlash{tile(in.Q.rows), tile(in.K.rows)}, store);
  return {store.O(), store.LSE()};
}

SparseGradients flash_backward(const SparseOperands& in, std::span<const float> dO,
                               const SparseOutputs& stored) {
  const std::int64_t q = tile(in.Q.rows), k = tile(in.K.rows);
  GradientStore store(in, dO, stored);
  run(SparseFlashBackward{q, k, q, k, tile(in.V.columns)}, store);
  return store.gradients();
}

SparseOutputs stored_forward(const SparseOperands& in) {
  const StoredSupport schedule{tile(in.Q.rows), tile(in.K.rows), tile(in.V.columns)};
  SupportStore store(in, schedule);
  run(schedule, store);
  return {store.O(), store.LSE()};
}

SparseGradients stored_backward(const SparseOperands& in, std::span<const float> dO,
                                const SparseOutputs& stored) {
  const StoredSupportBackward schedule{tile(in.Q.rows), tile(in.K.rows), tile(in.V.columns),
                                       tile(in.Q.columns)};
  SupportGradientStore store(in, dO, stored, schedule);
  run(schedule, store);
  return store.gradients();
}

}  // namespace

std::vector<SparseKernel> input_kernels() {
  return {
      {"sparse_inputs/expm1", "pairs of the support through expm1, all others through sums",
       Subtracted::final_maximum, forward, backward},
      {"sparse_inputs/sparse_flash", "sparse_flash and sparse_flash_bwd, three tiles a side",
       Subtracted::running_maximum, flash_forward, flash_backward},
      {"sparse_inputs/stored_support", "stored_support and stored_support_bwd, three tiles a side",
       Subtracted::final_maximum, stored_forward, stored_backward}};
}

}  // namespace attest::sparse
