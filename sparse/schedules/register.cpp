#include "sparse/schedules/register.hpp"

#include "cpu/schedules/register.hpp"
#include "sparse/schedules/block_backward.hpp"
#include "sparse/schedules/block_forward.hpp"
#include "sparse/schedules/compact_gradients.hpp"
#include "sparse/schedules/compact_scores.hpp"
#include "sparse/schedules/csr_gather.hpp"
#include "sparse/schedules/csr_two_pass.hpp"
#include "sparse/schedules/held_keys.hpp"
#include "sparse/schedules/held_pairs.hpp"
#include "sparse/schedules/held_scores.hpp"
#include "sparse/schedules/nm_gather.hpp"
#include "sparse/schedules/nm_two_pass.hpp"
#include "sparse/schedules/sparse_family.hpp"

namespace attest {
namespace {

template <class S>
void add(io::ScheduleRegistry& registry) {
  registry.add(std::make_unique<sparse::SparseFamily<S>>());
}

}  // namespace

void register_sparse_schedules(io::ScheduleRegistry& registry) {
  add<sparse::BlockFlash1>(registry);
  add<sparse::BlockFlash2>(registry);
  add<sparse::BlockSquareTiled>(registry);
  add<sparse::BlockRank1Tiled>(registry);
  add<sparse::BlockHeldScores>(registry);
  add<sparse::CsrGather>(registry);
  add<sparse::NmGather>(registry);
  add<sparse::BlockKeyStationary>(registry);
  add<sparse::BlockTwoPass>(registry);
  add<sparse::CsrTwoPass>(registry);
  add<sparse::BlockSquareTiledBackward>(registry);
  add<sparse::BlockRank1TiledBackward>(registry);
  add<sparse::BlockQueryStationaryP>(registry);
  add<sparse::BlockHeldPairs>(registry);
  add<sparse::BlockHeldKeys>(registry);
  add<sparse::NmTwoPass>(registry);
}

const io::ScheduleRegistry& all_schedules() {
  static const io::ScheduleRegistry all = [] {
    io::ScheduleRegistry registry;
    register_cpu_schedules(registry);
    register_sparse_schedules(registry);
    return registry;
  }();
  return all;
}

}  // namespace attest
