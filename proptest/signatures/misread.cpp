#include "proptest/signatures/misread.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace attest::proptest {
namespace {

// Where a row is read: on the axes batch, sequence and head.
struct Place {
  std::int64_t batch, row, head;
};

Tensor read_from(const Tensor& tensor, const std::function<Place(const Place&)>& of) {
  Tensor result = tensor;
  const TensorView& view = tensor.view();
  for (std::int64_t b = 0; b < view.extent(0); ++b) {
    for (std::int64_t s = 0; s < view.extent(1); ++s) {
      for (std::int64_t h = 0; h < view.extent(2); ++h) {
        const Place from = of({b, s, h});
        for (std::int64_t c = 0; c < view.extent(3); ++c) {
          result.set(tensor(from.batch, from.row, from.head, c), b, s, h, c);
        }
      }
    }
  }
  return result;
}

// The elements of an LSE tensor of one batch entry, those of (head, token) at token * heads + head.
Tensor by_token(const Tensor& tensor) {
  Tensor result = tensor;
  const std::int64_t heads = tensor.view().extent(1), tokens = tensor.view().extent(2);
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      const std::int64_t element = t * heads + h;
      result.set(tensor(0, h, t), 0, element / tokens, element % tokens);
    }
  }
  return result;
}

}  // namespace

InputValues queries_a_row_apart(const Problem& problem, const InputValues& values) {
  InputValues misread = values;
  misread.Q = read_from(values.Q, [&](const Place& at) {
    const std::int64_t row = at.batch + at.row;  // counted through all batch entries
    return Place{row / problem.seqlen_q, row % problem.seqlen_q, at.head};
  });
  return misread;
}

InputValues groups_as_rows(const Problem& problem, const InputValues& values) {
  InputValues misread = values;
  const std::int64_t group = problem.group_size();
  misread.Q = read_from(values.Q, [&](const Place& at) {
    return Place{(at.batch + at.head % group) % problem.batch, at.row, at.head / group};
  });
  return misread;
}

InputValues keys_at_queries(const Problem& problem, const InputValues& values) {
  InputValues misread = values;
  const std::vector<Sequence> sequences = problem.sequences();
  const auto of = [&](const Place& at) {
    const auto owns = [&](const Sequence& one) {
      return at.row >= one.k_begin && at.row < one.k_begin + one.k_length;
    };
    const auto sequence = std::find_if(sequences.begin(), sequences.end(), owns);
    const std::int64_t begin =
        std::min(sequence->q_begin, problem.tensor_seqlen_k() - sequence->k_length);
    return Place{at.batch, begin + at.row - sequence->k_begin, at.head};
  };
  misread.K = read_from(values.K, of);
  misread.V = read_from(values.V, of);
  return misread;
}

StoredLse first_heads_of(const Problem& problem, const StoredLse& truth) {
  StoredLse stored = truth;
  const TensorView& view = truth.value.view();
  for (std::int64_t b = 0; b < view.extent(0); ++b) {
    for (std::int64_t h = 0; h < view.extent(1); ++h) {
      for (std::int64_t i = 0; i < view.extent(2) && h % problem.group_size() != 0; ++i) {
        stored.value.set(std::nan(""), b, h, i);
      }
    }
  }
  return stored;
}

StoredLse by_token(const StoredLse& truth) {
  return {by_token(truth.value),
          {by_token(truth.bound.deterministic), by_token(truth.bound.probabilistic),
           by_token(truth.bound.sigma)}};
}

}  // namespace attest::proptest
