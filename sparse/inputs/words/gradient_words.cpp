#include "sparse/inputs/words/gradient_words.hpp"

#include <utility>

#include "sparse/inputs/words/attention_words.hpp"

namespace attest::sparse {
namespace {

std::vector<float> zeros(std::int64_t rows, std::int64_t columns) {
  return std::vector<float>(static_cast<std::size_t>(rows * columns));
}

io::MutableSlowMatrix matrix(const char* name, std::vector<float>& elements, std::int64_t rows,
                             std::int64_t columns) {
  return {name, rows, columns, DType::f32, elements.data(), columns};
}

}  // namespace

GradientStore::GradientStore(const SparseOperands& operands, std::span<const float> dO,
                             Outputs stored)
    : Q_(operands.Q),
      K_(operands.K),
      V_(operands.V),
      full_(full_rows(operands)),
      dO_(dO.begin(), dO.end()),
      stored_(std::move(stored)),
      gradients_{zeros(operands.Q.rows, operands.Q.columns),
                 zeros(operands.K.rows, operands.K.columns),
                 zeros(operands.V.rows, operands.V.columns)},
      scale_(static_cast<float>(operands.softmax_scale)) {
  require_sizes(operands, dO, stored_);
}

SlowGradients GradientStore::slow() {
  const std::int64_t q = Q_.matrix().rows, k = K_.matrix().rows;
  const std::int64_t dk = Q_.matrix().columns, dv = V_.matrix().columns;
  return {Q_.slow(),
          K_.slow(),
          V_.slow(),
          matrix("full", full_, q, 1),
          matrix("O", stored_.O, q, dv),
          matrix("LSE", stored_.LSE, q, 1),
          matrix("dO", dO_, q, dv),
          matrix("dQ", gradients_.dQ, q, dk),
          matrix("dK", gradients_.dK, k, dk),
          matrix("dV", gradients_.dV, k, dv),
          scale_};
}

}  // namespace attest::sparse
