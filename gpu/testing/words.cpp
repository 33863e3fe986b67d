#include "gpu/testing/words.hpp"

#include "gpu/testing/call.hpp"
#include "schedules/register.hpp"

namespace attest::gpu::testing {

MovedWords moved_words(const simt::GlobalMemory& memory, const simt::LaunchReport& report) {
  return total(moved_by_tensor(memory, report.traffic, DType::f32));
}

MovedWords counted_words(const std::string& schedule, const Problem& problem) {
  const AbiProblem form(problem, 1);
  const io::Traffic traffic =
      all_schedules().make(schedule, *form.get(), {})->dry_count({}).traffic();
  return {traffic.reads.words.value(), traffic.writes.words.value()};
}

std::string dense_schedule(const EmulatedKernel& kernel) {
  const auto named = io::ScheduleSpec::parse(kernel.description().schedule);
  return io::spec_without_lists(all_schedules(), named).to_string();
}

MovedWords group_savings(const Problem& problem, std::int64_t block_q, std::int64_t block_k) {
  const TileWords tiles = visited_tiles(problem, block_q, block_k);
  const std::int64_t later_heads = problem.num_heads_q - problem.num_heads_kv,
                     columns = problem.head_dim_qk + problem.head_dim_v;
  return {later_heads * columns * (tiles.keys + tiles.all_keys),
          later_heads * columns * tiles.all_keys};
}

}  // namespace attest::gpu::testing
