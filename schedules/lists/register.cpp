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
  registry.add(std::make_unique<schedules::SparseFamily<S>>());
}

}  // namespace

void register_list_schedules(io::ScheduleRegistry& registry) {
  add<schedules::BlockFlash1>(registry);
  add<schedules::BlockFlash2>(registry);
  add<schedules::BlockSquareTiled>(registry);
  add<schedules::BlockRank1Tiled>(registry);
  add<schedules::BlockHeldScores>(registry);
  add<schedules::CsrGather>(registry);
  add<schedules::NmGather>(registry);
  add<schedules::BlockKeyStationary>(registry);
  add<schedules::BlockTwoPass>(registry);
  add<schedules::CsrTwoPass>(registry);
  add<schedules::BlockSquareTiledBackward>(registry);
  add<schedules::BlockRank1TiledBackward>(registry);
  add<schedules::BlockQueryStationaryP>(registry);
  add<schedules::BlockHeldPairs>(registry);
  add<schedules::BlockHeldKeys>(registry);
  add<schedules::NmTwoPass>(registry);
}

}  // namespace attest
