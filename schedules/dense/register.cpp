#include "schedules/register.hpp"

#include "schedules/bands/held_pairs.hpp"
#include "schedules/bands/held_scores.hpp"
#include "schedules/bands/rolling_backward.hpp"
#include "schedules/bands/rolling_p.hpp"
#include "schedules/bands/rolling_queries.hpp"
#include "schedules/dense/column_groups.hpp"
#include "schedules/dense/flash1.hpp"
#include "schedules/dense/flash2.hpp"
#include "schedules/dense/key_stationary.hpp"
#include "schedules/dense/split_kv.hpp"
#include "schedules/dense/square_tiled.hpp"
#include "schedules/dense/standard.hpp"
#include "schedules/dense/stored_gradients.hpp"
#include "schedules/dense/stored_scores.hpp"
#include "schedules/dense/two_pass.hpp"
#include "schedules/engine/family.hpp"
#include "schedules/loss/loss.hpp"

namespace attest {
namespace {

template <class S>
void add(io::ScheduleRegistry& registry) {
  registry.add(std::make_unique<cpu::Family<S>>());
}

}  // namespace

void register_dense_schedules(io::ScheduleRegistry& registry) {
  add<cpu::Standard>(registry);
  add<cpu::Flash1>(registry);
  add<cpu::Flash2>(registry);
  add<cpu::Flash2Row>(registry);
  add<cpu::SplitKv>(registry);
  add<cpu::SquareTiled>(registry);
  add<cpu::Rank1Tiled>(registry);
  add<cpu::Hybrid>(registry);
  add<cpu::ColumnGroups>(registry);
  add<cpu::HeldScores>(registry);
  add<cpu::RollingQueries>(registry);
  add<cpu::StandardBackward>(registry);
  add<cpu::Flash1Backward>(registry);
  add<cpu::KeyStationary>(registry);
  add<cpu::TwoPass>(registry);
  add<cpu::TwoPassRow>(registry);
  add<cpu::RollingKeys>(registry);
  add<cpu::RollingQueriesBackward>(registry);
  add<cpu::KeyStationaryDs>(registry);
  add<cpu::QueryStationaryP>(registry);
  add<cpu::RollingP>(registry);
  add<cpu::HeldPairs>(registry);
  add<cpu::Rank1TiledBackward>(registry);
  add<cpu::SquareTiledBackward>(registry);
  add<cpu::LossLarge>(registry);
  add<cpu::LossLargeDirect>(registry);
  add<cpu::LossRows>(registry);
  add<cpu::LossSmall>(registry);
}

const io::ScheduleRegistry& dense_schedules() {
  static const io::ScheduleRegistry registry = [] {
    io::ScheduleRegistry all;
    register_dense_schedules(all);
    return all;
  }();
  return registry;
}

}  // namespace attest
