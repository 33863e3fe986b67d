#include "sparse/inputs/schedules/sparse_flash.hpp"

#include <algorithm>

namespace attest::sparse {

io::Traffic SparseFlash::cost(const SparseOperands& operands) const {
  const std::int64_t q = operands.Q.rows, k = operands.K.rows, dv = operands.V.columns;
  const io::Words passes = io::tiles(q, block_q), key_blocks = io::tiles(k, block_k);
  const io::Words pass =
      io::Words(2) * (io::Words(k) + key_blocks + operands.K.nonzeros() + operands.V.nonzeros());
  io::Words peak = 0;
  for (const io::Range& rows : blocks_of(q, block_q)) {
    const io::Words resident =
        csr_words(operands.Q, rows) + io::Words(rows.count()) * (io::Words(dv) + 3) + dv;
    for (const io::Range& keys : blocks_of(k, block_k)) {
      peak = std::max(peak, resident + io::Words(rows.count()) * keys.count() +
                                std::max(csr_words(operands.K, keys), csr_words(operands.V, keys)));
    }
  }
  return {words(io::Words(2) * q + passes + io::Words(2) * operands.Q.nonzeros() + passes * pass),
          words(io::Words(q) * (io::Words(dv) + 1)), words(peak)};
}

}  // namespace attest::sparse
