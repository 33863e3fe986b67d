#pragma once

#include <algorithm>

#include "cpu/schedules/parameter.hpp"
#include "cpu/schedules/score_step.hpp"
#include "sparse/schedules/tile_list.hpp"

namespace attest::sparse {

using cpu::HeadShape;

/// `kept` of every `group` consecutive keys, for every query.
struct NmShape {
  std::int64_t kept = 1, group = 2;
  friend bool operator==(const NmShape&, const NmShape&) = default;
};

/// The shape with the smallest group, of 2 to 256 keys, that all queries of all batch entries have:
/// of the last group, cut at the edge, a query may see fewer keys, as many as offsets of its group
/// lie beyond. Throws io::NotForProblem when there is none.
/// [sparse/schedules/nm_gather_test "shapes"]
NmShape nm_shape_of(const attest_problem& problem);

/// The metadata of an N:M pattern in slow memory: of each block of queries and each group the
/// offsets of the kept keys, packed in 32-bit words: i queries take ceil(i N ceil(log2 M) / 32).
/// They lie where block and group say, so nothing points to them.
class NmMetadata {
 public:
  NmMetadata(const cpu::ScoreRule& rule, std::int64_t q, std::int64_t k, NmShape shape,
             std::int64_t block_q);

  /// body(key) for each key that a query of the block sees, ascending, the metadata of its group in
  /// fast memory.
  template <io::Machine M, class Body>
  void for_keys(M& machine, io::Range queries, const Body& body) const {
    const std::vector<std::uint8_t> seen = seen_by(queries);
    const std::int64_t words = group_words(queries.count());
    std::int64_t first = queries.begin / block_q_ * groups() * group_words(block_q_);
    for (std::int64_t begin = 0; begin < k_; begin += shape_.group, first += words) {
      const auto offsets = machine.load(matrix().block({first, first + words}), "metadata");
      for (std::int64_t j = begin; j < std::min(begin + shape_.group, k_); ++j) {
        if (seen[static_cast<std::size_t>(j)] != 0) body(io::Range{j, j + 1});
      }
    }
  }

  /// Words of one group for so many queries.
  std::int64_t group_words(std::int64_t queries) const;
  std::int64_t groups() const { return io::tiles(k_, shape_.group); }

  /// Keys that a query of the range sees; without a boolean mask, all.
  std::int64_t keys_seen(io::Range queries) const;

 private:
  std::vector<std::uint8_t> seen_by(io::Range queries) const;
  io::SlowMatrix matrix() const;

  const cpu::ScoreRule& rule_;
  std::int64_t k_;
  NmShape shape_;
  std::int64_t block_q_;
  std::vector<float> words_;  // four bytes each: only how many there are matters
};

/// flash2_row for N:M patterns: blocks of queries stay, the keys that any of them keeps pass by
/// word by word, group after group with its metadata.
///
/// Cost:   reads = q dk + nz_k (dk + dv) + sum over blocks of ceil(k/M) w(i), writes = q (dv + 1)
///         with w(i) = ceil(i N ceil(log2 M) / 32); peak = i (dk + dv + 3) + w(i) + 1
///         [sparse/schedules/nm_gather_test "words"]
/// Source: ours; the offsets are those of Mishra et al. 2021, Accelerating Sparse Deep Neural
///         Networks, section 3.
struct NmGather {
  using Head = cpu::ForwardHead;
  static constexpr const char* kName = "nm_gather";
  static constexpr const char* kDense = "flash2_row";
  static constexpr const char* kSummary =
      "N:M patterns: query blocks stay, kept keys pass by; offsets count, packed in words";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static std::vector<cpu::Parameter<NmGather>> parameters() {
    return {{"bq", &NmGather::block_q, cpu::Extent::queries}};
  }
  std::int64_t block_q;
  NmShape shape{};

  void prepare(const attest_problem& problem) { shape = nm_shape_of(problem); }

  template <io::Machine M>
  void run(M& machine, const cpu::ForwardHead& head) const {
    const std::int64_t q = head.Q.rows();
    const NmMetadata metadata(head.rule, q, head.K.rows(), shape, block_q);
    machine.parallel_tiles(single_blocks(q, block_q), block_q, [&](auto& block, io::Range queries) {
      const auto Q = block.load(head.Q.block(queries), "Q");
      auto O = block.scratch(queries.count(), head.V.columns(), "O");
      auto m = block.scratch(queries.count(), 1, "m");
      auto l = block.scratch(queries.count(), 1, "l");
      auto s = block.scratch(queries.count(), 1, "S");
      block.compute(cpu::Fill{0}, O);
      block.compute(cpu::StartRows{}, m, l);
      metadata.for_keys(block, queries, [&](io::Range key) {
        {
          const auto K = block.stream(head.K.block(key), "K");
          cpu::compute_scores(block, s, Q, K, head.rule, queries, key);
        }
        cpu::update_softmax(block, s, m, l, O);
        const auto V = block.stream(head.V.block(key), "V");
        block.compute(cpu::Product{}, O, s, V);
      });
      block.compute(cpu::FinishRows{}, O, m, l);
      block.store(O, head.O.block(queries));
      block.store(m, head.LSE.block(queries));
    });
  }

  io::Traffic cost(const cpu::ForwardHead& head) const;
};

}  // namespace attest::sparse
