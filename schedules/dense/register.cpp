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
  registry.add(std::make_unique<schedules::Family<S>>());
}

}  // namespace

void register_dense_schedules(io::ScheduleRegistry& registry) {
  add<schedules::Standard>(registry);
  add<schedules::Flash1>(registry);
  add<schedules::Flash2>(registry);
  add<schedules::Flash2Row>(registry);
  add<schedules::SplitKv>(registry);
  add<schedules::SquareTiled>(registry);
  add<schedules::Rank1Tiled>(registry);
  add<schedules::Hybrid>(registry);
  add<schedules::ColumnGroups>(registry);
  add<schedules::HeldScores>(registry);
  add<schedules::RollingQueries>(registry);
  add<schedules::StandardBackward>(registry);
  add<schedules::Flash1Backward>(registry);
  add<schedules::KeyStationary>(registry);
  add<schedules::TwoPass>(registry);
  add<schedules::TwoPassRow>(registry);
  add<schedules::RollingKeys>(registry);
  add<schedules::RollingQueriesBackward>(registry);
  add<schedules::KeyStationaryDs>(registry);
  add<schedules::QueryStationaryP>(registry);
  add<schedules::RollingP>(registry);
  add<schedules::HeldPairs>(registry);
  add<schedules::Rank1TiledBackward>(registry);
  add<schedules::SquareTiledBackward>(registry);
  add<schedules::LossLarge>(registry);
  add<schedules::LossLargeDirect>(registry);
  add<schedules::LossRows>(registry);
  add<schedules::LossSmall>(registry);
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
