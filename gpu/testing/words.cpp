#include "gpu/testing/words.hpp"

#include <algorithm>
#include <array>
#include <ostream>
#include <string_view>

#include "cpu/register.hpp"
#include "gpu/testing/call.hpp"

namespace attest::gpu::testing {

std::ostream& operator<<(std::ostream& out, const MovedWords& words) {
  return out << words.reads << " + " << words.writes;
}

MovedWords moved_words(const simt::GlobalMemory& memory, const simt::LaunchReport& report) {
  constexpr std::array<std::string_view, 5> kMasks{"key_lengths", "cu_seqlens_q", "cu_seqlens_k",
                                                   "boolean", "alibi_slopes"};
  constexpr std::int64_t kBytes = sizeof(float);
  MovedWords words;
  for (std::size_t k = 0; k < report.traffic.size(); ++k) {
    if (std::count(kMasks.begin(), kMasks.end(), memory.ranges()[k].name) != 0) continue;
    words = words + MovedWords{report.traffic[k].read_bytes / kBytes,
                               report.traffic[k].written_bytes / kBytes};
  }
  return words;
}

MovedWords counted_words(const std::string& schedule, const Problem& problem) {
  const AbiProblem form(problem, 1);
  const io::Traffic traffic =
      cpu_schedules().make(schedule, *form.get(), {})->dry_count({}).traffic();
  return {traffic.reads.words.value(), traffic.writes.words.value()};
}

MovedWords group_savings(const Problem& problem, std::int64_t block_q, std::int64_t block_k) {
  const TileWords tiles = visited_tiles(problem, block_q, block_k);
  const std::int64_t later_heads = problem.num_heads_q - problem.num_heads_kv,
                     columns = problem.head_dim_qk + problem.head_dim_v;
  return {later_heads * columns * (tiles.keys + tiles.all_keys),
          later_heads * columns * tiles.all_keys};
}

}  // namespace attest::gpu::testing
