#include "sparse/inputs/schedules/sparse_flash_backward.hpp"

#include <algorithm>
#include <functional>

#include "sparse/inputs/words/attention_words.hpp"

namespace attest::sparse {
namespace {

using io::Range;
using io::Words;

// The largest value over blocks; 0 without any.
Words largest(std::int64_t extent, std::int64_t block, const std::function<Words(Range)>& value) {
  Words most = 0;
  for (const Range& range : blocks_of(extent, block)) most = std::max(most, value(range));
  return most;
}

Words peak_of(const SparseFlashBackward& s, const SparseOperands& in) {
  const std::int64_t q = in.Q.rows, k = in.K.rows;
  const Words dk = in.K.columns, dv = in.V.columns;
  const Words v = std::min(dv, Words(s.block_v)), shared = v * dk;
  const auto of_keys = [&](Range keys) { return csr_words(in.K, keys) + csr_words(in.V, keys); };
  const Words over_keys = shared + dk + largest(k, s.block_k, of_keys);
  const Words query_pass = largest(q, s.block_q, [&](Range queries) {
    const Words i = queries.count();
    const Words tile =
        largest(k, s.block_k, [&](Range keys) { return i * keys.count() + of_keys(keys); });
    return csr_words(in.Q, queries) + i * (dv + dk + 3) + std::max(shared, tile);
  });
  const Words over_queries = shared + v + dk + largest(q, s.pass_q, [&](Range queries) {
                               return csr_words(in.Q, queries) + Words(queries.count()) * (v + 3);
                             });
  const Words key_pass = largest(k, s.pass_k, [&](Range keys) {
    const Words j = keys.count();
    const Words tile = largest(q, s.pass_q, [&](Range queries) {
      return j * queries.count() + csr_words(in.Q, queries) + Words(queries.count()) * (dv + 3);
    });
    return of_keys(keys) + j * (dk + dv) + std::max({shared, dv, tile});
  });
  return std::max({over_keys, query_pass, over_queries, key_pass});
}

}  // namespace

io::Traffic SparseFlashBackward::cost(const SparseOperands& operands) const {
  const Words q = operands.Q.rows, k = operands.K.rows;
  const Words dk = operands.K.columns, dv = operands.V.columns;
  const Words c = io::tiles(operands.Q.rows, block_q), c_k = io::tiles(operands.K.rows, block_k);
  const Words p = io::tiles(operands.Q.rows, pass_q), p_k = io::tiles(operands.K.rows, pass_k);
  const Words e = io::tiles(operands.V.columns, block_v);
  const Words of_keys = 2 * (k + operands.K.nonzeros() + operands.V.nonzeros());
  const Words of_queries = q + 2 * Words(operands.Q.nonzeros());
  const Words shared = dv * dk + dk;
  const Words over_keys = e * (of_keys + 2 * c_k);
  const Words query_pass = of_queries + c + q * (2 * dv + 2) + c * (shared + of_keys + 2 * c_k);
  const Words over_queries = e * (of_queries + p + 2 * q) + q * (dv + 1);
  const Words key_pass = of_keys + 2 * p_k + p_k * (shared + dv + of_queries + p + q * (dv + 3));
  return {words(over_keys + query_pass + over_queries + key_pass),
          words(2 * shared + dv + q * (dk + 1) + k * (dk + dv)), words(peak_of(*this, operands))};
}

}  // namespace attest::sparse
