#include "proptest/laws/trials/reversed.hpp"

#include <algorithm>
#include <variant>

#include "core/error.hpp"
#include "core/mask/sparsity/sparsity_pattern.hpp"

namespace attest::proptest {
namespace {

enum class Side : std::uint8_t { queries, keys };

// Reverses the lines or the columns of a list over so many columns.
CsrForm reversed(const CsrForm& form, std::int64_t columns, Side side) {
  CsrForm result;
  const std::size_t lines = form.row_offsets.size() - 1;
  for (std::size_t line = 0; line < lines; ++line) {
    const std::size_t from = side == Side::queries ? lines - 1 - line : line;
    const auto begin = form.columns.begin() + form.row_offsets[from],
               end = form.columns.begin() + form.row_offsets[from + 1];
    if (side == Side::queries) {
      result.columns.insert(result.columns.end(), begin, end);
    } else {
      std::transform(std::reverse_iterator(end), std::reverse_iterator(begin),
                     std::back_inserter(result.columns), [columns](std::int32_t column) {
                       return static_cast<std::int32_t>(columns - 1 - column);
                     });
    }
    result.row_offsets.push_back(static_cast<std::int64_t>(result.columns.size()));
  }
  return result;
}

// The visible pairs, whatever hides the others.
CsrForm pairs_of(const Problem& problem) {
  CsrForm form;
  const Sequence sequence = problem.sequences().front();
  for (std::int64_t i = 0; i < problem.seqlen_q; ++i) {
    for (std::int64_t j = 0; j < problem.seqlen_k; ++j) {
      if (problem.mask.visible(sequence, i, j))
        form.columns.push_back(static_cast<std::int32_t>(j));
    }
    form.row_offsets.push_back(static_cast<std::int64_t>(form.columns.size()));
  }
  return form;
}

SparsityPattern::Form reversed_form(const Problem& problem, Side side) {
  const SparsityPattern* sparsity = problem.mask.sparsity();
  const auto* blocks = sparsity != nullptr ? std::get_if<BlockForm>(&sparsity->form()) : nullptr;
  if (blocks != nullptr && !problem.mask.banded()) {
    const std::int64_t extent = side == Side::queries ? problem.seqlen_q : problem.seqlen_k,
                       block = side == Side::queries ? blocks->block_q : blocks->block_k;
    if (extent % block == 0) {
      const std::int64_t columns = (problem.seqlen_k + blocks->block_k - 1) / blocks->block_k;
      return BlockForm{blocks->block_q, blocks->block_k, reversed(blocks->occupied, columns, side)};
    }
  }
  return reversed(pairs_of(problem), problem.seqlen_k, side);
}

Problem with_reversed(Problem problem, Side side) {
  if (problem.mask.packed() || !problem.mask.key_lengths.empty()) {
    throw InternalError("reversed: packed sequences or key lengths");
  }
  if (!problem.mask.banded() && problem.mask.boolean == nullptr) return problem;
  Pattern mask;
  mask.boolean = mask_of({problem.seqlen_q, problem.seqlen_k, reversed_form(problem, side),
                          side == Side::keys ? "reversed_keys" : "reversed_queries"});
  problem.mask = mask;
  return problem;
}

}  // namespace

Problem with_reversed_keys(const Problem& problem) { return with_reversed(problem, Side::keys); }

Problem with_reversed_queries(const Problem& problem) {
  return with_reversed(problem, Side::queries);
}

}  // namespace attest::proptest
