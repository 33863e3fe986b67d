#include "gpu/kernels/stored_scores.hpp"

#include "gpu/kernels/stored_scores.cuh"

namespace attest::gpu {
namespace {

using Scores = ScoreMatrix<simt::Counted>;
constexpr int kHybridColumns = 4;  // times 32

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
  return launch_line(StoredScores::score_line(call.arguments.shape, kQueries), emulation,
                     call.memory, store_scores<kQueries, kStatistics, simt::Counted>,
                     call.arguments, scores);
}

template <Stored kStored, int kColumns>
simt::LaunchReport launch_values(const EmulatedForward& call, const simt::Emulation& emulation,
                                 const Scores& scores) {
  return launch_line(StoredScores::value_line(call.arguments.shape, kColumns), emulation,
                     call.memory, weigh_values<kStored, kColumns, simt::Counted>, call.arguments,
                     scores);
}

template <Queries kQueries, int kColumns>
bool scores_fit(const AttentionShape& shape, const simt::Emulation& emulation) {
  return fits(StoredScores::score_line(shape, kQueries), emulation) &&
         fits(StoredScores::value_line(shape, kColumns), emulation);
}

bool standard_fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return scores_fit<Queries::streamed, 1>(shape, emulation) &&
         fits(StoredScores::softmax_line(shape), emulation);
}

simt::LaunchReport run_standard(EmulatedForward& call, const simt::Emulation& emulation) {
  const Scores scores = take_scores(call);
  simt::LaunchReport report =
      launch_scores<Queries::streamed, ScoreStatistics::none>(call, emulation, scores);
  report += launch_line(StoredScores::softmax_line(call.arguments.shape), emulation, call.memory,
                        softmax_rows<simt::Counted>, call.arguments, scores);
  return report += launch_values<Stored::weights, 1>(call, emulation, scores);
}

template <Queries kQueries, int kColumns>
simt::LaunchReport run_with_LSE(EmulatedForward& call, const simt::Emulation& emulation) {
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
      {.forward = {standard_fits, score_words, run_standard}});
  return kernel;
}

const EmulatedKernel& square_tiled_kernel() {
  static const EmulatedKernel kernel(
      emulated_description("gpu/square_tiled",
                           "CUDA, emulated on the host: square tiles, S in global memory",
                           "square_tiled:b=32"),
      {.forward = {scores_fit<Queries::streamed, 1>, words_with_LSE,
                   run_with_LSE<Queries::streamed, 1>}});
  return kernel;
}

const EmulatedKernel& hybrid_kernel() {
  static const EmulatedKernel kernel(
      emulated_description("gpu/hybrid",
                           "CUDA, emulated on the host: query blocks stay, S in global memory",
                           "hybrid:bq=32,oq=32,ov=128"),
      {.forward = {scores_fit<Queries::resident, kHybridColumns>, words_with_LSE,
                   run_with_LSE<Queries::resident, kHybridColumns>}});
  return kernel;
}

}  // namespace attest::gpu
