// Sparse Q and K: words of both cases of their product, and where they meet.
#include <algorithm>

#include "certify/reproduce/sparse_meeting.hpp"
#include "core/rng.hpp"
#include "sparse/inputs/input_schedules.hpp"
#include "sparse/inputs/lower_bounds.hpp"

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

std::vector<sparse::TileWords> tile_words(const std::vector<sparse::InputWords::Choice>& choices) {
  std::vector<sparse::TileWords> words;
  for (const auto& choice : choices) {
    words.push_back({choice.traffic.total_words().value(), choice.traffic.peak.words.value()});
  }
  return words;
}

// Whole attention: Q, K and V with the same entries in a row.
SparseSubject attention_of(std::int64_t seqlen, std::int64_t head_dim, std::int64_t entries,
                           io::Direction direction) {
  Rng rng(static_cast<std::uint64_t>(entries));
  SparseOperands operands;
  operands.Q = random_rows(rng, seqlen, head_dim, entries);
  operands.K = random_rows(rng, seqlen, head_dim, entries);
  operands.V = random_rows(rng, seqlen, head_dim, entries);
  const sparse::InputWords words(operands, direction);
  const bool forward = direction == io::Direction::forward;
  const sparse::Work work = sparse::work_of(operands);
  SparseSubject subject{seqlen, head_dim, entries, {}};
  subject.words.nonzeros = work.nonzeros;
  subject.words.pairs = work.pairs;
  subject.words.nested = tile_words(words.choices(forward ? "sparse_flash" : "sparse_flash_bwd"));
  subject.words.outer =
      tile_words(words.choices(forward ? "stored_support" : "stored_support_bwd"));
  subject.meeting = dividing_point({work.nonzeros, head_dim, operands.Q.nonzeros(), work.pairs});
  return subject;
}

void append(Findings& findings, Findings more) {
  for (Claim& claim : more.claims) findings.claims.push_back(std::move(claim));
  for (Plot& plot : more.plots) findings.plots.push_back(std::move(plot));
  for (Table& table : more.tables) findings.tables.push_back(std::move(table));
}

Findings run(const Laboratory& lab) {
  const std::int64_t seqlen = lab.seqlen_or(192, 384);
  const int steps = lab.effort == Effort::smoke ? 2 : 4;
  std::vector<SparseSubject> products;
  for (const std::int64_t entries : {8, 16, 32, 64, 128}) {
    products.push_back(subject_of(seqlen, entries));
  }
  Findings findings = sparse_findings(
      products, steps, {"the product of Q and K", "nested", "outer products", "sparse_inputs_io"});
  // The search over tiles takes all of them at every density, so whole attention is smaller.
  const std::int64_t queries = lab.effort == Effort::smoke ? 96 : 192;
  constexpr std::int64_t kNarrow = 32;
  for (const bool forward : {true, false}) {
    std::vector<SparseSubject> subjects;
    for (const std::int64_t entries : {2, 4, 8, 16, 32}) {
      subjects.push_back(attention_of(queries, kNarrow, entries,
                                      forward ? io::Direction::forward : io::Direction::backward));
    }
    const std::string pass = forward ? "forward" : "backward";
    append(findings,
           sparse_findings(subjects, steps,
                           {"attention " + pass, forward ? "sparse_flash" : "sparse_flash_bwd",
                            forward ? "stored_support" : "stored_support_bwd",
                            "sparse_attention_" + pass, "that of theorem 4.5"}));
  }
  return findings;
}

}  // namespace

Experiment sparse_inputs_io_experiment() {
  return {"sparse_inputs_io",
          "sparse Q, K and V in both cases: their product, attention forward and backward",
          {{"seqlen", 64, 1024}},
          run,
          15};
}

}  // namespace attest::certify
