// Sparse Q and K: words of both cases of their product, and where they meet.
#include <algorithm>

#include "certify/reproduce/sparse_meeting.hpp"
#include "core/rng.hpp"

namespace attest::certify {
namespace {

constexpr std::int64_t kHeadDim = 128, kLeastSide = 2;

// Every row has the same number of entries, in columns drawn. Values are of no account: words are
// counted.
CsrMatrix random_rows(Rng& rng, std::int64_t rows, std::int64_t columns, std::int64_t entries) {
  CsrMatrix matrix;
  matrix.rows = rows;
  matrix.columns = columns;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<std::int32_t> all;
    for (std::int64_t c = 0; c < columns; ++c) all.push_back(static_cast<std::int32_t>(c));
    for (std::int64_t e = 0; e < entries; ++e) {
      std::swap(all[static_cast<std::size_t>(e)],
                all[static_cast<std::size_t>(rng.between(e, columns - 1))]);
    }
    all.resize(static_cast<std::size_t>(entries));
    std::sort(all.begin(), all.end());
    matrix.column_indices.insert(matrix.column_indices.end(), all.begin(), all.end());
    matrix.row_offsets.push_back(static_cast<std::int64_t>(matrix.column_indices.size()));
  }
  matrix.values.assign(matrix.column_indices.size(), 1.0f);
  return matrix;
}

SparseSubject subject_of(std::int64_t seqlen, std::int64_t entries) {
  Rng rng(static_cast<std::uint64_t>(entries));
  const CsrMatrix Q = random_rows(rng, seqlen, kHeadDim, entries),
                  K = random_rows(rng, seqlen, kHeadDim, entries);
  return {seqlen, kHeadDim, entries, sparse::words_by_tiles(Q, K, kLeastSide)};
}

Findings run(const Laboratory& lab) {
  const std::int64_t seqlen = lab.seqlen_or(192, 384);
  std::vector<SparseSubject> subjects;
  for (const std::int64_t entries : {8, 16, 32, 64, 128}) {
    subjects.push_back(subject_of(seqlen, entries));
  }
  return sparse_findings(subjects, lab.effort == Effort::smoke ? 2 : 4);
}

}  // namespace

Experiment sparse_inputs_io_experiment() {
  return {"sparse_inputs_io",
          "the product of sparse Q and K in both cases",
          {{"seqlen", 64, 1024}},
          run,
          15};
}

}  // namespace attest::certify
