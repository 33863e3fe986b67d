#include "gpu/testing/words.hpp"

#include <ostream>
#include <set>

#include "core/error.hpp"
#include "cpu/register.hpp"
#include "gpu/testing/call.hpp"

namespace attest::gpu::testing {

std::ostream& operator<<(std::ostream& out, const MovedWords& words) {
  return out << words.reads << " + " << words.writes;
}

MovedWords total(const MovedByTensor& moved) {
  MovedWords sum;
  for (const auto& [name, words] : moved) sum = sum + words;
  return sum;
}

MovedByTensor moved_by_tensor(const simt::GlobalMemory& memory, const simt::LaunchReport& report,
                              DType dtype) {
  static const std::set<std::string> not_counted{"key_lengths", "cu_seqlens_q", "cu_seqlens_k",
                                                 "boolean", "alibi_slopes"};
  static const std::set<std::string> of_the_problem{"Q", "K", "V", "O", "dO", "dQ", "dK", "dV"};
  MovedByTensor moved;
  for (std::size_t k = 0; k < report.traffic.size(); ++k) {
    const std::string& name = memory.ranges()[k].name;
    const simt::GlobalTraffic& traffic = report.traffic[k];
    if (not_counted.count(name) != 0 || traffic == simt::GlobalTraffic{}) continue;
    const auto word =
        static_cast<std::int64_t>(size_bytes(of_the_problem.count(name) != 0 ? dtype : DType::f32));
    if (traffic.read_bytes % word != 0 || traffic.written_bytes % word != 0) {
      throw InternalError(name + ": moved in parts of words");
    }
    moved[name] = moved[name] + MovedWords{traffic.read_bytes / word, traffic.written_bytes / word};
  }
  return moved;
}

MovedWords moved_words(const simt::GlobalMemory& memory, const simt::LaunchReport& report) {
  return total(moved_by_tensor(memory, report, DType::f32));
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
