// Sparse Q and K: words of both cases of their product, and where they meet.
#include <algorithm>

#include "certify/reproduce/claims/sparse_meeting.hpp"
#include "certify/reproduce/counted.hpp"
#include "core/rng.hpp"
#include "sparse/inputs/schedules/input_schedules.hpp"
#include "sparse/inputs/words/lower_bounds.hpp"

namespace attest::certify {
namespace {

// Wide enough that M at the dividing points is far above the words of lower order, the offsets of
// a row and a column of each block.
constexpr std::int64_t kHeadDim = 1024, kLeastSide = 4;
constexpr int kSidesToAnOctave = 2;

const char* const kTheorem = "Li et al. 2024, Theorem 4.5";

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
  SparseSubject subject{seqlen, kHeadDim, entries,
                        sparse::words_by_tiles(Q, K, kLeastSide, kSidesToAnOctave)};
  subject.dividing = {product_dividing_point(subject.words)};
  return subject;
}

std::vector<sparse::TileWords> tile_words(const std::vector<sparse::InputWords::Choice>& choices) {
  std::vector<sparse::TileWords> words;
  words.reserve(choices.size());
  for (const auto& choice : choices) {
    words.push_back({choice.traffic.total_words().value(), choice.traffic.peak.words.value()});
  }
  return words;
}

// Schedules by which whole attention is compared in a direction.
struct Pass {
  Direction direction;
  const char *name, *large, *small;  // schedules of sparse inputs
  const char *dense_large, *dense_small;
};

constexpr Pass kForward{Direction::forward, "forward", "sparse_flash",
                        "stored_support",   "flash2",  "square_tiled"};
constexpr Pass kBackward{Direction::backward,  "backward", "sparse_flash_bwd",
                         "stored_support_bwd", "two_pass", "square_tiled_bwd"};

// Q, K and V with the same entries in a row.
SparseSubject attention_of(std::int64_t seqlen, std::int64_t head_dim, std::int64_t entries,
                           const Pass& pass) {
  Rng rng(static_cast<std::uint64_t>(entries));
  SparseOperands operands;
  operands.Q = random_rows(rng, seqlen, head_dim, entries);
  operands.K = random_rows(rng, seqlen, head_dim, entries);
  operands.V = random_rows(rng, seqlen, head_dim, entries);
  // Four sides of tiles to choose backward, three forward.
  const bool forward = pass.direction == Direction::forward;
  const sparse::InputWords words(operands, pass.direction, forward ? kSidesToAnOctave : 1);
  const sparse::Work work = sparse::work_of(operands);
  SparseSubject subject{seqlen, head_dim, entries, {}};
  subject.words.nonzeros = work.nonzeros;
  subject.words.pairs = work.pairs;
  subject.words.nested = tile_words(words.choices(pass.large));
  subject.words.outer = tile_words(words.choices(pass.small));
  subject.dividing = {dividing_point({work.nonzeros, head_dim, operands.Q.nonzeros(), work.pairs})};
  if (forward) {
    subject.dividing.push_back(dense_output_dividing_point(
        static_cast<double>(operands.Q.nonzeros()), static_cast<double>(seqlen * head_dim),
        static_cast<double>(work.pairs)));
  }
  return subject;
}

// Words of either form with every entry present, and of dense schedules, by fast memory.
Claim dense_claim(const Laboratory& lab, const SparseSubject& dense_subject, const Pass& pass) {
  const Problem problem = square_problem(dense_subject.seqlen, dense_subject.head_dim);
  Curve sparse{"sparse", Curve::Kind::measured, {}}, dense{"dense", Curve::Kind::measured, {}};
  constexpr int kLow = -1, kHigh = 3, kSteps = 2;
  for (const std::int64_t size : fast_memory_grid(dense_subject.head_dim, kLow, kHigh, kSteps)) {
    const auto add = [size](Curve& curve, std::optional<std::int64_t> a,
                            std::optional<std::int64_t> b) {
      if (!a && !b) return;
      const std::int64_t fewest = std::min(a.value_or(b.value_or(0)), b.value_or(a.value_or(0)));
      curve.points.emplace_back(static_cast<double>(size), static_cast<double>(fewest));
    };
    const auto words_of = [&](const char* schedule) -> std::optional<std::int64_t> {
      const auto counted = count_words(lab.schedules, schedule, problem, size);
      return counted ? std::optional(counted->words) : std::nullopt;
    };
    add(sparse, sparse::fewest_words(dense_subject.words.nested, size),
        sparse::fewest_words(dense_subject.words.outer, size));
    add(dense, words_of(pass.dense_large), words_of(pass.dense_small));
  }
  return dense_special_case(std::string("attention ") + pass.name, sparse, dense);
}

void append(Findings& findings, Findings more) {
  for (Claim& claim : more.claims) findings.claims.push_back(std::move(claim));
  for (Plot& plot : more.plots) findings.plots.push_back(std::move(plot));
  for (Table& table : more.tables) findings.tables.push_back(std::move(table));
}

Findings attention_findings(const Laboratory& lab, const Pass& pass, int steps) {
  // The search over tiles takes all of them at every density, so whole attention is smaller.
  const std::int64_t seqlen = lab.effort == Effort::smoke ? 192 : 512;
  constexpr std::int64_t kNarrow = 64;
  std::vector<SparseSubject> subjects;
  for (const std::int64_t entries : {4, 8, 16, 32, 64}) {
    subjects.push_back(attention_of(seqlen, kNarrow, entries, pass));
  }
  std::vector<Dividing> points{{"that of theorem 4.5", kTheorem}};
  if (pass.direction == Direction::forward) {
    points.push_back({"that of orders with a dense O", "docs/theory/sparse-inputs.md"});
  }
  const std::string name = pass.name;
  Findings findings = sparse_findings(
      subjects, steps,
      {"attention " + name, pass.large, pass.small, "sparse_attention_" + name, points});
  findings.claims.push_back(dense_claim(lab, subjects.back(), pass));
  return findings;
}

Findings run(const Laboratory& lab) {
  const std::int64_t seqlen = lab.seqlen_or(1024, 1024);
  const int steps = lab.effort == Effort::smoke ? 2 : 4;
  std::vector<SparseSubject> products;
  for (const std::int64_t entries : {32, 64, 128, 256, 512, 1024}) {
    products.push_back(subject_of(seqlen, entries));
  }
  Findings findings = sparse_findings(products, steps,
                                      {"the product of Q and K",
                                       "nested",
                                       "outer products",
                                       "sparse_inputs_io",
                                       {{"nnz^2 / Z", kTheorem}}});
  for (const Pass& pass : {kForward, kBackward}) {
    append(findings, attention_findings(lab, pass, steps));
  }
  return findings;
}

}  // namespace

Experiment sparse_inputs_io_experiment() {
  return {"sparse_inputs_io",
          "sparse Q, K and V in both cases: their product, attention forward and backward",
          {{"seqlen", 64, 1024}},
          run,
          16};
}

}  // namespace attest::certify
