#include "cpu/schedules/register.hpp"

#include "cpu/schedules/column_groups.hpp"
#include "cpu/schedules/family.hpp"
#include "cpu/schedules/flash1.hpp"
#include "cpu/schedules/flash2.hpp"
#include "cpu/schedules/held_pairs.hpp"
#include "cpu/schedules/held_scores.hpp"
#include "cpu/schedules/key_stationary.hpp"
#include "cpu/schedules/loss.hpp"
#include "cpu/schedules/rolling_backward.hpp"
#include "cpu/schedules/rolling_p.hpp"
#include "cpu/schedules/rolling_queries.hpp"
#include "cpu/schedules/split_kv.hpp"
#include "cpu/schedules/square_tiled.hpp"
#include "cpu/schedules/standard.hpp"
#include "cpu/schedules/stored_gradients.hpp"
#include "cpu/schedules/stored_scores.hpp"
#include "cpu/schedules/two_pass.hpp"

namespace attest {
namespace {

template <class S>
void add(io::ScheduleRegistry& registry) {
  registry.add(std::make_unique<cpu::Family<S>>());
}

}  // namespace

void register_cpu_schedules(io::ScheduleRegistry& registry) {
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

const io::ScheduleRegistry& cpu_schedules() {
  static const io::ScheduleRegistry registry = [] {
    io::ScheduleRegistry all;
    register_cpu_schedules(all);
    return all;
  }();
  return registry;
}

}  // namespace attest
