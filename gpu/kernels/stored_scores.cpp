#include "gpu/kernels/stored_scores.hpp"

#include "gpu/kernels/stored_scores.cuh"

namespace attest::gpu {
namespace {

using Scores = ScoreMatrix<simt::Counted>;
constexpr int kHybridColumns = 4;  // times 32

std::int64_t blocks(const AttentionShape& shape) {
  return blocks_for(shape.seqlen_q, StoredScores::kTile, shape.num_heads_q, shape.batch);
}

std::int64_t rows(const AttentionShape& shape) {
  return shape.batch * shape.num_heads_q * shape.seqlen_q;
}

Scores take_scores(EmulatedForward& call) {
  return {call.take("S", rows(call.arguments.shape) * call.arguments.shape.seqlen_k)};
}

std::int64_t score_words(const attest_problem& problem) {
  return rows(shape_of(problem)) * problem.seqlen_k;
}

std::int64_t words_with_LSE(const attest_problem& problem) {
  return score_words(problem) + tensor_rows(problem) * problem.num_heads_q;
}

template <Queries kQueries, ScoreStatistics kStatistics>
simt::LaunchReport launch_scores(const EmulatedForward& call, const simt::Emulation& emulation,
                                 const Scores& scores) {
  const AttentionShape& shape = call.arguments.shape;
  const int resident = kQueries == Queries::resident ? shape.head_dim_qk : 0;
  return simt::launch(
      grid_of(blocks(shape), StoredScores::kLanes, StoredScores::score_floats(resident)), emulation,
      call.memory, store_scores<kQueries, kStatistics, simt::Counted>, call.arguments, scores);
}

template <Stored kStored, int kColumns>
simt::LaunchReport launch_values(const EmulatedForward& call, const simt::Emulation& emulation,
                                 const Scores& scores) {
  return simt::launch(grid_of(blocks(call.arguments.shape), StoredScores::kLanes,
                              StoredScores::value_floats(kColumns)),
                      emulation, call.memory, weigh_values<kStored, kColumns, simt::Counted>,
                      call.arguments, scores);
}

bool standard_fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return grid_fits(rows(shape), shape.seqlen_k, emulation) &&
         grid_fits(blocks(shape), StoredScores::score_floats(0), emulation) &&
         grid_fits(blocks(shape), StoredScores::value_floats(1), emulation);
}

simt::LaunchReport run_standard(EmulatedForward& call, const simt::Emulation& emulation) {
  const AttentionShape& shape = call.arguments.shape;
  if (blocks(shape) == 0) return {};  // no query: nothing to write
  const Scores scores = take_scores(call);
  simt::LaunchReport report =
      launch_scores<Queries::streamed, ScoreStatistics::none>(call, emulation, scores);
  report += simt::launch(grid_of(rows(shape), 32, shape.seqlen_k), emulation, call.memory,
                         softmax_rows<simt::Counted>, call.arguments, scores);
  return report += launch_values<Stored::weights, 1>(call, emulation, scores);
}

template <Queries kQueries, int kColumns>
bool scores_fit(const AttentionShape& shape, const simt::Emulation& emulation) {
  const int resident = kQueries == Queries::resident ? shape.head_dim_qk : 0;
  return grid_fits(blocks(shape), StoredScores::score_floats(resident), emulation) &&
         grid_fits(blocks(shape), StoredScores::value_floats(kColumns), emulation);
}

template <Queries kQueries, int kColumns>
simt::LaunchReport run_with_LSE(EmulatedForward& call, const simt::Emulation& emulation) {
  if (blocks(call.arguments.shape) == 0) return {};  // no query: nothing to write
  const Scores scores = take_scores(call);
  call.require_LSE();
  simt::LaunchReport report =
      launch_scores<kQueries, ScoreStatistics::kept>(call, emulation, scores);
  return report += launch_values<Stored::scores, kColumns>(call, emulation, scores);
}

}  // namespace

const EmulatedKernel& standard_kernel() {
  static const EmulatedKernel kernel(
      [] {
        attest_description d = emulated_description(
            "gpu/standard", "CUDA, emulated on the host: S and P in global memory",
            "standard:bm=32,bn=32,bl=32");
        d.features &= ~static_cast<std::uint32_t>(ATTEST_LSE);
        return d;
      }(),
      {standard_fits, score_words, run_standard});
  return kernel;
}

const EmulatedKernel& square_tiled_kernel() {
  static const EmulatedKernel kernel(
      emulated_description("gpu/square_tiled",
                           "CUDA, emulated on the host: square tiles, S in global memory",
                           "square_tiled:b=32"),
      {scores_fit<Queries::streamed, 1>, words_with_LSE, run_with_LSE<Queries::streamed, 1>});
  return kernel;
}

const EmulatedKernel& hybrid_kernel() {
  static const EmulatedKernel kernel(
      emulated_description("gpu/hybrid",
                           "CUDA, emulated on the host: query blocks stay, S in global memory",
                           "hybrid:bq=32,oq=32,ov=128"),
      {scores_fit<Queries::resident, kHybridColumns>, words_with_LSE,
       run_with_LSE<Queries::resident, kHybridColumns>});
  return kernel;
}

}  // namespace attest::gpu
