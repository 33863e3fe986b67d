#include "gpu/kernels/emulated/moved_words.hpp"

#include <set>

#include "core/error.hpp"

namespace attest::gpu {

MovedWords total(const MovedByTensor& moved) {
  MovedWords sum;
  for (const auto& [name, words] : moved) sum = sum + words;
  return sum;
}

MovedByTensor moved_by_tensor(const simt::GlobalMemory& memory,
                              const std::vector<simt::GlobalTraffic>& traffic_of, DType dtype) {
  static const std::set<std::string> not_counted{
      "key_lengths",  "query_lengths", "cu_seqlens_q", "cu_seqlens_k", "boolean",    "per_head",
      "alibi_slopes", "sinks",         "bias",         "dBias",        "block_table"};
  static const std::set<std::string> of_the_problem{"Q", "K", "V", "O", "dO", "dQ", "dK", "dV"};
  MovedByTensor moved;
  for (std::size_t k = 0; k < traffic_of.size(); ++k) {
    const std::string& name = memory.ranges()[k].name;
    const simt::GlobalTraffic& traffic = traffic_of[k];
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

}  // namespace attest::gpu
