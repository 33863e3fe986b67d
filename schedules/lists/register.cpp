#include "schedules/register.hpp"

#include "schedules/dense/flash1.hpp"
#include "schedules/dense/flash2.hpp"
#include "schedules/dense/key_stationary.hpp"
#include "schedules/dense/two_pass.hpp"
#include "schedules/lists/blocks/compact_gradients.hpp"
#include "schedules/lists/blocks/compact_scores.hpp"
#include "schedules/lists/blocks/held_keys.hpp"
#include "schedules/lists/blocks/held_pairs.hpp"
#include "schedules/lists/blocks/held_scores.hpp"
#include "schedules/lists/csr/csr_gather.hpp"
#include "schedules/lists/csr/csr_two_pass.hpp"
#include "schedules/lists/nm/nm_gather.hpp"
#include "schedules/lists/nm/nm_two_pass.hpp"
#include "schedules/lists/sparse_family.hpp"

namespace attest {
namespace {

template <class S>
void add(io::ScheduleRegistry& registry) {
  registry.add(std::make_unique<sparse::SparseFamily<S>>());
}

}  // namespace

void register_list_schedules(io::ScheduleRegistry& registry) {
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

}  // namespace attest
