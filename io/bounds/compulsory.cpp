#include "io/bounds/compulsory.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "io/machine/words.hpp"

namespace attest::io {

Words distinct_words(const Extent& extent, Storage storage, const OperandRows& rows) {
  const Words q_words = Words(rows.q) * extent.head_dim_qk;
  const Words k_words = Words(rows.k) * extent.head_dim_qk;
  const Words v_words = Words(rows.v) * extent.head_dim_v;
  switch (storage) {
    case Storage::disjoint:
      return q_words + k_words + v_words;
    case Storage::key_is_value: {
      // A row needed as a key and as a value has as many words as the longer of the two.
      const std::int64_t both = std::min(rows.k, rows.v);
      const std::int64_t longer = std::max(extent.head_dim_qk, extent.head_dim_v);
      return q_words + Words(both) * longer + Words(rows.k - both) * extent.head_dim_qk +
             Words(rows.v - both) * extent.head_dim_v;
    }
    case Storage::query_is_key:
      // Which rows coincide is not known: at least the larger set is read.
      return std::max(q_words, k_words) + v_words;
    case Storage::unknown:
      return 0;
  }
  throw InternalError("Storage out of range");
}

std::string distinct_words_formula(Storage storage, const OperandNames& rows) {
  const bool same = rows.k == rows.v;
  switch (storage) {
    case Storage::disjoint:
      return rows.q + " d_k + " +
             (same ? rows.k + " (d_k + d_v)" : rows.k + " d_k + " + rows.v + " d_v");
    case Storage::key_is_value:
      // Fewer rows are read of K than of V where the names differ.
      return rows.q + " d_k + " + rows.k + " max(d_k, d_v)" +
             (same ? "" : " + (" + rows.v + " - " + rows.k + ") d_v");
    case Storage::query_is_key:
      return "max(" + rows.q + ", " + rows.k + ") d_k + " + rows.v + " d_v";
    case Storage::unknown:
      return "0";
  }
  throw InternalError("Storage out of range");
}

Words greatest_of_many_keys(const std::vector<Bound>& others) {
  Words greatest = 0;
  for (const Bound& bound : others) {
    if (bound.is_lower_bound() && !bound.of_all_rows) {
      greatest = std::max<Words>(greatest, bound.words);
    }
  }
  return greatest;
}

}  // namespace attest::io
