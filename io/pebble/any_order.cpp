#include "io/pebble/any_order.hpp"

#include <bit>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace attest::io {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

WordSet bit(std::int32_t word) { return WordSet{1} << word; }

// The sum of a set of products: term t is formed from the words terms[t], the sum over a nonempty
// set A of terms is the word sums[A].
struct PartialSums {
  std::vector<WordSet> terms;
  std::vector<std::int32_t> sums;

  std::size_t all() const { return sums.size() - 1; }
  WordSet total() const { return bit(sums[all()]); }

  // The terms that some sum in `held` has.
  std::size_t covered(WordSet held) const {
    std::size_t terms_held = 0;
    for (std::size_t set = 1; set < sums.size(); ++set) {
      if ((held & bit(sums[set])) != 0) terms_held |= set;
    }
    return terms_held;
  }
};

struct Row {
  std::vector<std::int32_t> keys;
  std::vector<PartialSums> scores;   // one for every key
  std::vector<PartialSums> outputs;  // one for every column
  OneKeyRow kind = OneKeyRow::computed;
};

class Builder {
 public:
  Builder(const AttentionShape& shape, OneKeyRow one_key) : shape_(shape), one_key_(one_key) {}

  StepSystem build() && {
    const auto q = inputs(shape_.seqlen_q, shape_.head_dim_qk);
    const auto k = inputs(shape_.seqlen_k, shape_.head_dim_qk);
    const auto v = inputs(shape_.seqlen_k, shape_.head_dim_v);
    std::vector<Row> rows;
    for (std::int32_t i = 0; i < shape_.seqlen_q; ++i) {
      if (!shape_.keys(i).empty()) rows.push_back(row(q[at(i)], k, v, shape_.keys(i)));
    }
    system_.placement = Placement::in_place;
    system_.remaining = [rows, inputs = system_.inputs](WordSet fast, WordSet slow) {
      return remaining(rows, inputs, fast, slow);
    };
    return std::move(system_);
  }

 private:
  std::int32_t word() {
    if (system_.words == 64) {
      throw InvalidProblem("the computation has more than 64 words; give a smaller shape");
    }
    return system_.words++;
  }

  std::vector<std::vector<std::int32_t>> inputs(std::int32_t rows, std::int32_t columns) {
    std::vector<std::vector<std::int32_t>> words(at(rows));
    for (auto& row : words) {
      for (std::int32_t column = 0; column < columns; ++column) {
        row.push_back(word());
        system_.inputs |= bit(row.back());
      }
    }
    return words;
  }

  Row row(const std::vector<std::int32_t>& q, const std::vector<std::vector<std::int32_t>>& k,
          const std::vector<std::vector<std::int32_t>>& v, const std::vector<std::int32_t>& keys) {
    Row row;
    row.keys = keys;
    if (keys.size() == 1) row.kind = one_key_;
    for (const std::int32_t j : keys) {
      if (row.kind == OneKeyRow::copied) break;
      std::vector<WordSet> terms;
      for (std::size_t l = 0; l < q.size(); ++l) terms.push_back(bit(q[l]) | bit(k[at(j)][l]));
      row.scores.push_back(partial_sums(std::move(terms)));
    }
    for (std::int32_t c = 0; c < shape_.head_dim_v; ++c) {
      std::vector<WordSet> terms;
      for (std::size_t index = 0; index < keys.size(); ++index) {
        const WordSet weight =
            row.kind == OneKeyRow::copied ? WordSet{0} : row.scores[index].total();
        terms.push_back(bit(v[at(keys[index])][at(c)]) | weight);
      }
      row.outputs.push_back(partial_sums(std::move(terms)));
      system_.outputs |= row.outputs.back().total();
    }
    return row;
  }

  PartialSums partial_sums(std::vector<WordSet> terms) {
    PartialSums result;
    result.terms = std::move(terms);
    const std::size_t sets = std::size_t{1} << result.terms.size();
    result.sums.push_back(-1);
    for (std::size_t set = 1; set < sets; ++set) result.sums.push_back(word());
    for (std::size_t set = 1; set < sets; ++set) {
      for (std::size_t term = 0; term < result.terms.size(); ++term) {
        const std::size_t alone = std::size_t{1} << term;
        if ((set & alone) == 0) continue;
        const std::size_t others = set ^ alone;
        const WordSet before = others == 0 ? 0 : bit(result.sums[others]);
        system_.steps.push_back({result.terms[term] | before, result.sums[set]});
      }
      for (std::size_t part = (set - 1) & set; part > (set ^ part); part = (part - 1) & set) {
        system_.steps.push_back(
            {bit(result.sums[part]) | bit(result.sums[set ^ part]), result.sums[set]});
      }
    }
    return result;
  }

  // Missing outputs are written. Keys of a missing output in no partial sum that is held anywhere
  // need their value; their score, unless it is held, needs the products in no partial score.
  static std::int32_t remaining(const std::vector<Row>& rows, WordSet inputs, WordSet fast,
                                WordSet slow) {
    const WordSet held = fast | slow;
    WordSet needed = 0;
    std::int32_t writes = 0;
    for (const Row& row : rows) {
      std::size_t missing_keys = 0;
      for (const PartialSums& output : row.outputs) {
        if ((slow & output.total()) != 0) continue;
        ++writes;
        const std::size_t missing = output.all() & ~output.covered(held);
        missing_keys |= missing;
        for (std::size_t term = 0; term < output.terms.size(); ++term) {
          if ((missing >> term & 1) != 0) needed |= output.terms[term] & inputs;
        }
      }
      for (std::size_t index = 0; index < row.scores.size(); ++index) {
        const PartialSums& score = row.scores[index];
        if ((missing_keys >> index & 1) == 0 || (held & score.total()) != 0) continue;
        const std::size_t missing = score.all() & ~score.covered(held);
        for (std::size_t term = 0; term < score.terms.size(); ++term) {
          if ((missing >> term & 1) != 0) needed |= score.terms[term];
        }
      }
    }
    return writes + std::popcount(needed & ~fast);
  }

  const AttentionShape& shape_;
  const OneKeyRow one_key_;
  StepSystem system_;
};

}  // namespace

StepSystem any_order_forward(const AttentionShape& shape, OneKeyRow one_key) {
  shape.validate();
  return Builder(shape, one_key).build();
}

}  // namespace attest::io
