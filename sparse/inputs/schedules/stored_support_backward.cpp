#include "sparse/inputs/schedules/stored_support_backward.hpp"

#include <algorithm>
#include <utility>

namespace attest::sparse {
namespace {

using io::Range;
using io::Words;

// Words of the blocks of a matrix, [columns][rows].
std::vector<std::vector<Words>> grid_words(const CsrMatrix& matrix, const std::vector<Range>& rows,
                                           const std::vector<Range>& columns) {
  std::vector<std::vector<Words>> words;
  for (const Range& of_columns : columns) {
    words.emplace_back();
    for (const Range& of_rows : rows) {
      const CsrMatrix block = block_of(matrix, of_rows, of_columns);
      words.back().push_back(csr_words(block, {0, block.rows}));
    }
  }
  return words;
}

// The same of the support, whose entries are counted already.
std::vector<std::vector<Words>> support_words(const EntrySums& support,
                                              const std::vector<Range>& queries,
                                              const std::vector<Range>& keys) {
  std::vector<std::vector<Words>> words;
  for (const Range& of_keys : keys) {
    words.emplace_back();
    for (const Range& of_queries : queries) {
      words.back().push_back(Words(of_queries.count()) + 1 +
                             Words(2) * support.in(of_queries, of_keys));
    }
  }
  return words;
}

Words words_of(const std::vector<std::vector<Words>>& grid) {
  Words sum = 0;
  for (const auto& columns : grid) {
    for (const Words& block : columns) sum += block;
  }
  return sum;
}

// The blocks of all operands, and the pairs of the support in each block.
struct Blocks {
  std::vector<Range> q, k, v, d;
  std::vector<std::vector<Words>> Q, K, V, S;  // S: [keys][queries]
  OuterPeaks scores;

  Blocks(const StoredSupportBackward& s, const SparseOperands& in, const EntrySums& support)
      : q(blocks_of(in.Q.rows, s.block_q)),
        k(blocks_of(in.K.rows, s.block_k)),
        v(blocks_of(in.V.columns, s.block_v)),
        d(blocks_of(in.K.columns, s.block_d)),
        Q(grid_words(in.Q, q, d)),
        K(grid_words(in.K, k, d)),
        V(grid_words(in.V, k, v)),
        S(support_words(support, q, k)),
        scores(s.scores(), in.Q, in.K, support) {}
};

Words largest(const std::vector<Words>& values) {
  return values.empty() ? Words(0) : *std::max_element(values.begin(), values.end());
}

// The fast memory of G and H of one block, beside full, LSE and D: both values of an entry are
// there with the structure, and what passes by is either the columns of Q and K or dO and V.
Words support_peak(const Blocks& at, std::size_t i, std::size_t j) {
  const Words rows = at.q[i].count(), structure = at.S[j][i];
  const Words entries = (structure - rows - 1).value() / 2;
  Words passing = 0;
  for (std::size_t g = 0; g < at.v.size(); ++g) {
    passing = std::max(passing, rows * at.v[g].count() + at.V[g][j]);
  }
  return 3 * rows + std::max(at.scores.of(i, j), structure + entries + passing);
}

Words sums_peak(const Blocks& at, std::size_t g, std::size_t h) {
  const Words v = at.v[g].count(), x = at.d[h].count();
  const Words with_row = g == 0 ? 1 : 0, with_sum = h == 0 ? 1 : 0;
  Words of_keys = 0, of_queries = 0;
  for (std::size_t j = 0; j < at.k.size(); ++j) {
    of_keys = std::max(of_keys, at.K[h][j] + at.V[g][j]);
  }
  for (std::size_t i = 0; i < at.q.size(); ++i) {
    of_queries = std::max(of_queries, at.Q[h][i] + at.q[i].count() * (v + 2 + with_row));
  }
  return v * x + with_row * x + std::max(of_keys, with_sum * v + of_queries);
}

Words dQ_peak(const Blocks& at, std::size_t i, std::size_t h) {
  const Words rows = at.q[i].count(), x = at.d[h].count();
  Words passing = 0;
  for (const Range& of_v : at.v) {
    passing = std::max(passing, 3 * rows + Words(of_v.count()) * (rows + x));
  }
  for (std::size_t j = 0; j < at.k.size(); ++j) {
    passing = std::max(passing, at.S[j][i] + at.K[h][j]);
  }
  return rows * x + passing;
}

Words dK_peak(const Blocks& at, std::size_t j, std::size_t h) {
  const Words keys = at.k[j].count(), x = at.d[h].count();
  Words passing = x;
  for (std::size_t g = 0; g < at.v.size(); ++g) {
    passing = std::max(passing, at.V[g][j] + at.v[g].count() * x);
  }
  for (std::size_t i = 0; i < at.q.size(); ++i) {
    passing = std::max(passing, at.S[j][i] + at.Q[h][i]);
  }
  return keys * x + passing;
}

Words dV_peak(const Blocks& at, std::size_t j, std::size_t g) {
  const Words keys = at.k[j].count(), v = at.v[g].count();
  Words passing = v;
  for (std::size_t i = 0; i < at.q.size(); ++i) {
    passing = std::max(passing, at.S[j][i] + at.q[i].count() * v);
  }
  return keys * v + passing;
}

Words peak_of(const Blocks& at) {
  std::vector<Words> peaks;
  for (std::size_t i = 0; i < at.q.size(); ++i) {
    peaks.push_back(Words(at.q[i].count()) * (Words(at.v.front().count()) + 1) + 1);  // D
    for (std::size_t j = 0; j < at.k.size(); ++j) peaks.push_back(support_peak(at, i, j));
    for (std::size_t h = 0; h < at.d.size(); ++h) peaks.push_back(dQ_peak(at, i, h));
  }
  for (std::size_t g = 0; g < at.v.size(); ++g) {
    for (std::size_t h = 0; h < at.d.size(); ++h) peaks.push_back(sums_peak(at, g, h));
    for (std::size_t j = 0; j < at.k.size(); ++j) peaks.push_back(dV_peak(at, j, g));
  }
  for (std::size_t h = 0; h < at.d.size(); ++h) {
    for (std::size_t j = 0; j < at.k.size(); ++j) peaks.push_back(dK_peak(at, j, h));
  }
  return largest(peaks);
}

}  // namespace

SupportGradientStore::SupportGradientStore(const SparseOperands& operands,
                                           std::span<const float> dO, Outputs stored,
                                           const StoredSupportBackward& schedule)
    : dense_(operands, dO, std::move(stored)),
      scores_(operands.Q, operands.K, {schedule.block_q, schedule.block_k, OuterProduct::kInputs}),
      Q_(operands.Q, schedule.block_q, schedule.block_d),
      K_(operands.K, schedule.block_k, schedule.block_d),
      V_(operands.V, schedule.block_k, schedule.block_v) {}

SlowSupportGradients SupportGradientStore::slow() {
  const SlowGradients whole = dense_.slow();
  return {scores_.slow(), Q_.slow(), K_.slow(), V_.slow(), whole.full, whole.O,
          whole.LSE,      whole.dO,  whole.dQ,  whole.dK,  whole.dV,   whole.scale};
}

io::Traffic StoredSupportBackward::cost(const SparseOperands& operands) const {
  return cost(operands, EntrySums(product_structure(operands.Q, operands.K)));
}

io::Traffic StoredSupportBackward::cost(const SparseOperands& operands,
                                        const EntrySums& support_sums) const {
  const Blocks at(*this, operands, support_sums);
  const Words q = operands.Q.rows, k = operands.K.rows;
  const Words d = operands.K.columns, dv = operands.V.columns;
  const Words c(static_cast<std::int64_t>(at.q.size())),
      c_k(static_cast<std::int64_t>(at.k.size()));
  const Words e(static_cast<std::int64_t>(at.v.size())),
      e_d(static_cast<std::int64_t>(at.d.size()));
  const Words Q = words_of(at.Q), K = words_of(at.K), V = words_of(at.V), S = words_of(at.S);
  const Words shared = dv * d + d;
  const Words support = 3 * q + 2 * q * dv + c_k * q * dv + c * V;
  const Words sums = e_d * V + e * K + e * Q + 2 * e * e_d * q + e_d * q * (dv + 1);
  const Words of_dQ = e_d * (q * (dv + 3) + S) + c * (shared + K);
  const Words of_dK = c_k * (shared + Q) + e_d * (V + S);
  const Words of_dV = e * S + c_k * (dv + q * dv);
  const io::Traffic product = scores().cost(operands.Q, operands.K, support_sums);
  return {product.reads + words(support + sums + of_dQ + of_dK + of_dV),
          product.writes + words(q + product.writes.words + 2 * shared + dv + q * d + k * (d + dv)),
          words(peak_of(at))};
}

}  // namespace attest::sparse
