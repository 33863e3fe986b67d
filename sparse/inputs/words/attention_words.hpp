#pragma once

#include <vector>

#include "core/sparse_operands/sparse_operands.hpp"
#include "io/machine/words.hpp"
#include "sparse/inputs/words/slow_csr.hpp"

/// The operands of sparse attention in slow memory.
namespace attest::sparse {

/// Matrices that a schedule sees.
struct SlowAttention {
  SlowCsr Q, K, V;
  io::SlowMatrix full;  // (q, 1): 1 for a row whose support is every key, else 0
  io::MutableSlowMatrix O, LSE;
  float scale = 1;
};

/// Owns the operands and the results. Which rows are full comes from the symbolic phase; a schedule
/// reads it.
class AttentionStore {
 public:
  explicit AttentionStore(const SparseOperands& operands);

  SlowAttention slow();
  const std::vector<float>& O() const { return O_; }
  const std::vector<float>& LSE() const { return LSE_; }

 private:
  CsrStore Q_, K_, V_;
  std::vector<float> full_, O_, LSE_;
  float scale_;
};

/// 1 for a row whose support is every key, else 0.
std::vector<float> full_rows(const SparseOperands& operands);

/// So many words of four bytes.
inline io::Amount words(io::Words count) { return {count, count * 4}; }

/// Returns the words that CsrTiles takes for some rows: count + 1 offsets, and two words an entry.
io::Words csr_words(const CsrMatrix& matrix, io::Range rows);

}  // namespace attest::sparse
